//! What a peer is told, a line at a time, and how it answers.

use std::error::Error;
use std::io::{BufRead, Write as _};
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A lock of some library on one path, and a counter znode that only the lock protects.
pub trait Peer {
    fn acquire(&mut self) -> Result<()>;
    fn release(&mut self) -> Result<()>;
    /// Whether it holds, as far as the library tells a program that listens to it.
    fn is_held(&mut self) -> Result<bool>;
    fn read_counter(&mut self) -> Result<Vec<u8>>;
    fn write_counter(&mut self, data: &[u8]) -> Result<()>;
}

/// What a peer is started with.
pub struct Arguments {
    pub hosts: String,
    /// The lock's.
    pub path: String,
    pub counter: String,
    pub session_timeout: Duration,
    /// Which of the library's locks it is.
    pub lock: String,
}

impl Arguments {
    pub fn read() -> Result<Arguments> {
        let mut arguments = std::env::args().skip(1);
        let mut next = || arguments.next().ok_or("usage: HOSTS PATH COUNTER SESSION_MS LOCK");
        Ok(Arguments {
            hosts: next()?,
            path: next()?,
            counter: next()?,
            session_timeout: Duration::from_millis(next()?.parse()?),
            lock: next()?,
        })
    }
}

/// Does what it is told until there is nothing more. `tag` tells the library's own writes from those of others.
pub fn serve(tag: &str, version: &str, mut peer: impl Peer) -> Result<()> {
    println!("ready {version}");
    for line in std::io::stdin().lock().lines() {
        let answer = answer(tag, &mut peer, &line?);
        let answer = answer.unwrap_or_else(|error| format!("error {error}"));
        println!("{}", answer.replace('\n', " "));
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(tag: &str, peer: &mut impl Peer, line: &str) -> Result<String> {
    Ok(match line.split_once(' ') {
        None if line == "acquire" => {
            peer.acquire()?;
            "acquired".to_owned()
        }
        None if line == "release" => {
            peer.release()?;
            "released".to_owned()
        }
        None if line == "state" => (if peer.is_held()? { "held" } else { "lost" }).to_owned(),
        Some(("increment", times)) => {
            format!("incremented {}", increment(tag, peer, times.parse()?)?)
        }
        _ => return Err(format!("no such command: {line}").into()),
    })
}

/// Counts how often the write before was another library's.
fn increment(tag: &str, peer: &mut impl Peer, times: u32) -> Result<u32> {
    let mut taken_over = 0;
    for _ in 0..times {
        peer.acquire()?;
        let data = String::from_utf8(peer.read_counter()?)?;
        let (value, writer) = data.split_once(' ').ok_or("the counter is `VALUE WRITER`")?;
        taken_over += u32::from(writer != tag);
        let next = value.parse::<u64>()? + 1;
        peer.write_counter(format!("{next} {tag}").as_bytes())?;
        peer.release()?;
    }
    Ok(taken_over)
}
