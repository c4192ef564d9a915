//! The ratios that are wished for, each formed within a round, and what has become of them since the last time.

use serde_json::{Value, json};

use crate::figures::{Answer, Figure, Report, Row};
use crate::question::{
    CLASSIC, CRATE, FLOOR, Key, OURS, OURS_AWAITED, OURS_CLIENT_EACH, OURS_LOCAL, OURS_UNANNOUNCED,
    PIPELINED, THREE_REQUESTS, WAITERS,
};

/// A ratio that is worse by more than that is pointed out.
const TOLERATED: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wish {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Debug)]
pub struct Ratio {
    pub name: String,
    pub figure: Figure,
    pub wish: Wish,
}

impl Wish {
    pub fn text(self) -> String {
        match self {
            Wish::AtLeast(wish) => format!("at least {wish}"),
            Wish::AtMost(wish) => format!("at most {wish}"),
        }
    }
}

impl Ratio {
    pub fn is_met(&self) -> bool {
        match self.wish {
            Wish::AtLeast(wish) => self.figure.median >= wish,
            Wish::AtMost(wish) => self.figure.median <= wish,
        }
    }

    pub fn json(&self) -> Value {
        let Figure { median, least, most } = self.figure;
        json!({
            "name": self.name,
            "median": median,
            "min": least,
            "max": most,
            "wish": self.wish.text(),
            "met": self.is_met(),
        })
    }
}

/// Those whose contestants were there.
pub fn all(answers: &[Answer], rounds: usize) -> Vec<Ratio> {
    let row = |key, label: &str, n| Report::answer(answers, key)?.row(label, n);
    let per_second = |row: Option<&Row>, round| row?.in_round(round, "per_second");
    let over = |left: Option<f64>, right: Option<f64>| Some(left? / right?);
    let mut ratios = Vec::new();
    let mut add = |name: String, wish, of: &dyn Fn(usize) -> Option<f64>| {
        let figure = Figure::of((0..rounds).filter_map(of));
        ratios.extend(figure.map(|figure| Ratio { name, figure, wish }));
    };
    let ours = row(Key::Uncontended, OURS, 1);
    let the_crate = row(Key::Uncontended, CRATE, 1);
    add("uncontended cycles/s / zookeeper-client".to_owned(), Wish::AtLeast(2.2), &|round| {
        over(per_second(ours, round), per_second(the_crate, round))
    });
    let (awaited, floor) =
        (row(Key::Uncontended, OURS_AWAITED, 1), row(Key::Uncontended, FLOOR, 1));
    let p50 = |row: Option<&Row>, round| row?.in_round(round, "p50_us");
    add("acquire p50, release awaited / one zoo_create".to_owned(), Wish::AtMost(1.15), &|round| {
        over(p50(awaited, round), p50(floor, round))
    });
    // A heartbeat or two fall into the time.
    add("server packets per uncontended cycle".to_owned(), Wish::AtMost(2.05), &|round| {
        ours?.in_round(round, "packets")
    });
    let best_peer = |n, round| {
        let rows = &Report::answer(answers, Key::Handoff)?.rows;
        let none = [OURS, OURS_UNANNOUNCED, THREE_REQUESTS];
        let peers =
            rows.iter().filter(|row| row.entry.n == n && !none.contains(&&*row.entry.label));
        peers.filter_map(|row| row.in_round(round, "per_second")).max_by(f64::total_cmp)
    };
    for (label, how) in [(OURS, ""), (OURS_UNANNOUNCED, ", not announced")] {
        let handed = |n, round| per_second(row(Key::Handoff, label, n), round);
        for n in WAITERS {
            let wish = Wish::AtLeast(if n == 2 { 1.4 } else { 2.0 });
            add(format!("hand-offs/s of {n} waiters{how} / best peer"), wish, &|round| {
                over(handed(n, round), best_peer(n, round))
            });
        }
        let bound = |round| per_second(row(Key::Handoff, THREE_REQUESTS, 8), round);
        let name = format!("hand-offs/s of 8 waiters{how} / three requests in C");
        add(name, Wish::AtLeast(0.9), &|round| over(handed(8, round), bound(round)));
        let name = format!("hand-offs/s of 128 waiters{how} / of 8");
        add(name, Wish::AtLeast(0.8), &|round| over(handed(128, round), handed(8, round)));
        let name = format!("packets per hand-off{how}, the most of all numbers");
        add(name, Wish::AtMost(3.2), &|round| {
            let packets = WAITERS.map(|n| row(Key::Handoff, label, n)?.in_round(round, "packets"));
            packets.into_iter().flatten().max_by(f64::total_cmp)
        });
    }
    let latency = |label, round| row(Key::Arrivals, label, 8)?.in_round(round, "p99_us");
    add("p99 at fixed times / the better peer".to_owned(), Wish::AtMost(1.0), &|round| {
        let peers = [CRATE, CLASSIC].map(|label| latency(label, round));
        over(latency(OURS, round), peers.into_iter().flatten().min_by(f64::total_cmp))
    });
    let (local, each) = (row(Key::Local, OURS_LOCAL, 8), row(Key::Local, OURS_CLIENT_EACH, 8));
    add("local hand-offs/s / a client each".to_owned(), Wish::AtLeast(100.0), &|round| {
        over(per_second(local, round), per_second(each, round))
    });
    let (many, pipelined) = (row(Key::Many, OURS, 64), row(Key::Many, PIPELINED, 64));
    add(
        "64 locks over one session, cycles/s / pipelined C".to_owned(),
        Wish::AtLeast(0.8),
        &|round| over(per_second(many, round), per_second(pipelined, round)),
    );
    ratios
}

/// A line for each that is worse than it was.
pub fn fallen(now: &[Ratio], before: &[(String, f64)]) -> Vec<String> {
    let worse = |ratio: &&Ratio, was: f64| match ratio.wish {
        Wish::AtLeast(_) => ratio.figure.median < was * (1.0 - TOLERATED),
        Wish::AtMost(_) => ratio.figure.median > was * (1.0 + TOLERATED),
    };
    now.iter()
        .filter_map(|ratio| {
            let (_, was) = before.iter().find(|(name, _)| *name == ratio.name)?;
            worse(&ratio, *was).then(|| {
                format!(
                    "worse by more than a tenth: {}: {:.2}, was {was}",
                    ratio.name, ratio.figure.median
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fell_by_more_than_a_tenth_is_pointed_out() {
        let ratio = |name: &str, median, wish| Ratio {
            name: name.to_owned(),
            figure: Figure { median, least: median, most: median },
            wish,
        };
        let now = [
            ratio("fell", 1.7, Wish::AtLeast(1.0)),
            ratio("held", 1.9, Wish::AtLeast(1.0)),
            ratio("grew", 3.4, Wish::AtMost(4.0)),
            ratio("new", 1.0, Wish::AtMost(4.0)),
        ];
        let before = [("fell".to_owned(), 2.0), ("held".to_owned(), 2.0), ("grew".to_owned(), 3.0)];
        let lines = fallen(&now, &before);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("fell: 1.70, was 2") && lines[1].contains("grew"), "{lines:?}");
    }
}
