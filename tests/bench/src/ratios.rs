//! The ratios of the contestants, each formed within a round, and what has become of them since the last time.

use serde_json::{Value, json};

use crate::figures::{Answer, Figure, Report, Row};
use crate::question::{
    CLASSIC, CRATE, FLOOR, Key, OURS, OURS_AWAITED, OURS_CLIENT_EACH, OURS_LOCAL, OURS_UNANNOUNCED,
    PIPELINED, THREE_REQUESTS, WAITERS,
};

/// A ratio that is worse by more than that is pointed out.
const TOLERATED: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Better {
    More,
    Less,
}

#[derive(Clone, Debug)]
pub struct Ratio {
    pub name: String,
    pub figure: Figure,
    pub better: Better,
}

impl Better {
    pub fn name(self) -> &'static str {
        match self {
            Better::More => "more",
            Better::Less => "less",
        }
    }
}

impl Ratio {
    pub fn json(&self) -> Value {
        let Figure { median, least, most } = self.figure;
        json!({
            "name": self.name,
            "median": median,
            "min": least,
            "max": most,
            "better": self.better.name(),
        })
    }
}

/// Those whose contestants were there.
pub fn all(answers: &[Answer], rounds: usize) -> Vec<Ratio> {
    let row = |key, label: &str, n| Report::answer(answers, key)?.row(label, n);
    let per_second = |row: Option<&Row>, round| row?.in_round(round, "per_second");
    let over = |left: Option<f64>, right: Option<f64>| Some(left? / right?);
    let mut ratios = Vec::new();
    let mut add = |name: String, better, of: &dyn Fn(usize) -> Option<f64>| {
        let figure = Figure::of((0..rounds).filter_map(of));
        ratios.extend(figure.map(|figure| Ratio { name, figure, better }));
    };
    let ours = row(Key::Uncontended, OURS, 1);
    let the_crate = row(Key::Uncontended, CRATE, 1);
    add("uncontended cycles/s / zookeeper-client".to_owned(), Better::More, &|round| {
        over(per_second(ours, round), per_second(the_crate, round))
    });
    let (awaited, floor) =
        (row(Key::Uncontended, OURS_AWAITED, 1), row(Key::Uncontended, FLOOR, 1));
    let p50 = |row: Option<&Row>, round| row?.in_round(round, "p50_us");
    add("acquire p50, release awaited / one zoo_create".to_owned(), Better::Less, &|round| {
        over(p50(awaited, round), p50(floor, round))
    });
    // A heartbeat or two fall into the time.
    add("server packets per uncontended cycle".to_owned(), Better::Less, &|round| {
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
            add(format!("hand-offs/s of {n} waiters{how} / best peer"), Better::More, &|round| {
                over(handed(n, round), best_peer(n, round))
            });
        }
        let bound = |round| per_second(row(Key::Handoff, THREE_REQUESTS, 8), round);
        let name = format!("hand-offs/s of 8 waiters{how} / three requests in C");
        add(name, Better::More, &|round| over(handed(8, round), bound(round)));
        let name = format!("hand-offs/s of 128 waiters{how} / of 8");
        add(name, Better::More, &|round| over(handed(128, round), handed(8, round)));
        let name = format!("packets per hand-off{how}, the most of all numbers");
        add(name, Better::Less, &|round| {
            let packets = WAITERS.map(|n| row(Key::Handoff, label, n)?.in_round(round, "packets"));
            packets.into_iter().flatten().max_by(f64::total_cmp)
        });
    }
    let latency = |label, round| row(Key::Arrivals, label, 8)?.in_round(round, "p99_us");
    add("p99 at fixed times / the better peer".to_owned(), Better::Less, &|round| {
        let peers = [CRATE, CLASSIC].map(|label| latency(label, round));
        over(latency(OURS, round), peers.into_iter().flatten().min_by(f64::total_cmp))
    });
    let (local, each) = (row(Key::Local, OURS_LOCAL, 8), row(Key::Local, OURS_CLIENT_EACH, 8));
    add("local hand-offs/s / a client each".to_owned(), Better::More, &|round| {
        over(per_second(local, round), per_second(each, round))
    });
    let (many, pipelined) = (row(Key::Many, OURS, 64), row(Key::Many, PIPELINED, 64));
    add("64 locks over one session, cycles/s / pipelined C".to_owned(), Better::More, &|round| {
        over(per_second(many, round), per_second(pipelined, round))
    });
    ratios
}

/// A line for each that is worse than it was.
pub fn fallen(now: &[Ratio], before: &[(String, f64)]) -> Vec<String> {
    let worse = |ratio: &&Ratio, was: f64| match ratio.better {
        Better::More => ratio.figure.median < was * (1.0 - TOLERATED),
        Better::Less => ratio.figure.median > was * (1.0 + TOLERATED),
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
        let ratio = |name: &str, median, better| Ratio {
            name: name.to_owned(),
            figure: Figure { median, least: median, most: median },
            better,
        };
        let now = [
            ratio("fell", 1.7, Better::More),
            ratio("held", 1.9, Better::More),
            ratio("grew", 3.4, Better::Less),
            ratio("new", 1.0, Better::Less),
        ];
        let before = [("fell".to_owned(), 2.0), ("held".to_owned(), 2.0), ("grew".to_owned(), 3.0)];
        let lines = fallen(&now, &before);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("fell: 1.70, was 2") && lines[1].contains("grew"), "{lines:?}");
    }
}
