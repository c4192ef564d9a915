//! Where and when it was measured.

use std::time::SystemTime;

use serde_json::{Value, json};

pub struct Machine {
    pub date: String,
    pub processor: String,
    pub cores: usize,
    /// The load averages of a minute, before and after.
    pub load: (f64, f64),
    pub server: String,
}

impl Machine {
    pub fn look(server: String) -> Machine {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let processor = model.map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']));
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let before = load();
        Machine {
            date: now.split('T').next().unwrap_or_default().to_owned(),
            processor: processor.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: (before, before),
            server,
        }
    }

    pub fn look_again(&mut self) {
        self.load.1 = load();
    }

    pub fn line(&self) -> String {
        format!(
            "{}; {} cores of {}; ZooKeeper {}; load before {:.1}, at the end {:.1} (of which the run itself is a part)",
            self.date, self.cores, self.processor, self.server, self.load.0, self.load.1
        )
    }

    pub fn json(&self) -> Value {
        json!({
            "date": self.date,
            "processor": self.processor,
            "cores": self.cores,
            "load_before": self.load.0,
            "load_after": self.load.1,
            "zookeeper": self.server,
        })
    }
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}
