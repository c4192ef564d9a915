//! What both `top` and `serve` are told of what to follow.

use clap::Args;

use crate::servers::Servers;

#[derive(Args, Debug)]
pub struct FollowOptions {
    /// Where the locks are, with all below it
    #[arg(default_value = "/", value_parser = crate::run::options::lock_path)]
    pub path: String,

    /// So many requests a second, on average, at most. A lock that does not change costs none
    #[arg(long, value_name = "N", default_value = "500")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,

    #[command(flatten)]
    pub servers: Servers,
}
