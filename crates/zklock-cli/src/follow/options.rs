//! What both `top` and `serve` are told of what to follow.

use clap::Args;

use crate::servers::Servers;

#[derive(Args, Debug)]
pub struct FollowOptions {
    /// The path to search, with everything below it
    #[arg(default_value = "/", value_parser = crate::run::options::lock_path)]
    pub path: String,

    /// The most requests a second, on average. Locks that do not change cost none
    #[arg(long, value_name = "N", default_value = "500")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,

    #[command(flatten)]
    pub servers: Servers,
}
