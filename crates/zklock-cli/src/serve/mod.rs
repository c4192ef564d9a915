//! `zklock serve`: a page and metrics about the locks below a path.

mod address;
mod choice;
mod http;
mod metrics;
mod page;
mod timeline;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::follow::follower::follow;
use crate::follow::options::FollowOptions;
use crate::follow::shared::{Shared, connection_name};
use crate::interrupts::when_asked_to_end;
use crate::output::{say, show};
use address::Hosts;
use choice::Choice;
use http::{Reply, Request};

/// How long the end of the session may take.
const GOODBYE: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct ServeOptions {
    /// The address to listen on. Anyone who can connect can read, so other addresses than this machine's own give a warning
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8218")]
    listen: SocketAddr,

    #[command(flatten)]
    follow: FollowOptions,
}

const MORE: &str = "\
Pages:
  /          holders, waiters, and a timeline of holds, always up to date
  /metrics   for Prometheus
  /healthz   200 while there is a connection to ZooKeeper, 503 otherwise

Guarantees:
  Nothing can be changed by it. On a loopback address it answers only requests
  for an address or for localhost, so that no other site can read it through a
  browser.

Limits:
  Only ZooKeeper can list locks. There is no password and no TLS: put a proxy
  before it that has them. The last 5,000 holds are kept, in memory. Each
  znode below the path is listed once, with a watch, and again when it has
  changed, at most once a second; all of it keeps within --rate. Holds shorter
  than a second may go unseen; zklock_claims_total counts each claim
  nevertheless.

Signals:
  SIGINT, SIGTERM, SIGHUP  end it

Exit status:
  0    it was ended
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock serve /locks
  zklock serve --listen 10.0.0.1:8218 /locks";

/// # Errors
/// The address can't be had, no server answers, or there is no such path.
pub fn serve(options: &ServeOptions) -> Result<u8, Failure> {
    let cannot =
        |error: std::io::Error| Failure::new(format!("listen at {}: {error}", options.listen));
    let listener = TcpListener::bind(options.listen).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let client = options.follow.servers.zookeeper("serve")?.connect()?;
    let shared = follow(&client, &options.follow)?;
    if !address.ip().is_loopback() {
        say(format_args!(
            "{address} is not only this machine's: whoever can reach it can see who holds which lock"
        ));
    }
    let hosts = Hosts::of(address.ip());
    let path = options.follow.path.clone();
    let answer = move |request: &Request| answer(&shared, &path, hosts, request);
    let (end, ended) = mpsc::channel();
    when_asked_to_end(move || {
        let _ = end.send(());
    })
    .map_err(|error| Failure::new(format!("listen for signals: {error}")))?;
    http::serve(listener, answer)
        .map_err(|error| Failure::new(format!("start a thread: {error}")))?;
    show(format_args!("{} at http://{address}/\n", options.follow.path));
    let _ = ended.recv();
    // Its session goes with it, and all it watches.
    let _ = client.close().within(GOODBYE).wait();
    Ok(0)
}

fn answer(shared: &Shared, path: &str, hosts: Hosts, request: &Request) -> Reply {
    if !hosts.allows(request.host.as_deref()) {
        return Reply::text(421, "call it by its address, or by localhost\n");
    }
    let picture = shared.picture();
    let choice = Choice::of(&request.query);
    match request.path.as_str() {
        "/" => Reply::html(page::whole(path, &picture, &choice).into_string()),
        "/now" => {
            let version = page::version(&picture, &choice);
            if request.known.as_ref() == Some(&version) {
                return Reply::not_modified();
            }
            Reply::html(page::now(path, &picture, &choice).into_string()).tagged(version)
        }
        "/page.css" => Reply::file("text/css; charset=utf-8", include_str!("page.css")),
        "/page.js" => Reply::file("text/javascript; charset=utf-8", include_str!("page.js")),
        "/metrics" => match metrics::of(&picture, &shared.meters) {
            Ok(text) => Reply::file("text/plain; version=0.0.4; charset=utf-8", text),
            Err(error) => Reply::text(500, format!("{error}\n")),
        },
        "/healthz" if picture.is_connected() => Reply::text(200, "ok\n"),
        "/healthz" => Reply::text(503, format!("{}\n", connection_name(picture.connection))),
        _ => Reply::text(404, "there are /, /metrics and /healthz\n"),
    }
}
