//! `zklock top`: the locks below a path, live.

mod board;
mod screen;

use std::io::{IsTerminal, stdin, stdout};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::failure::Failure;
use crate::follow::follower::follow;
use crate::follow::options::FollowOptions;
use crate::follow::shared::Shared;
use crate::interrupts::when_asked_to_end;
use crate::output::when_gone;
use board::{Board, Order};

/// As a shell shows the death by SIGHUP.
const HUNG_UP: i32 = 128 + 1;
/// How long the end of the session may take.
const GOODBYE: Duration = Duration::from_secs(2);
/// How long a change may go unseen.
const FRAME: Duration = Duration::from_millis(250);

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct TopOptions {
    /// The order of the locks: by waiters, by the time they are held, or by path
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Waiters)]
    sort: Order,

    #[command(flatten)]
    follow: FollowOptions,
}

const MORE: &str = "\
Keys:
  q, Esc, Ctrl-C     ends it
  w, a, p            sorts by waiters, by age of the hold, by path
  arrows, PgUp/PgDn  select a lock; below is its whole queue, in turn
  Enter              hides the queue, and shows it again

Limits:
  Only ZooKeeper can list locks. Each znode below the path is listed once, with
  a watch, and again when it has changed, at most once a second. A lock that
  nobody touches costs the servers nothing; all of it keeps within --rate.
  Without a connection it says so, shows what was last seen, and goes on; also
  after its session has expired.

Signals:
  SIGINT, SIGTERM, SIGHUP  end it, and give the terminal back

Exit status:
  0    it was ended
  125  zklock failed: the servers cannot be reached, or an argument is wrong
  129  the terminal was closed

Examples:
  zklock top /locks
  zklock top --sort age /locks";

/// # Errors
/// There is no terminal, no server answers, or there is no such path.
pub fn top(options: &TopOptions) -> Result<u8, Failure> {
    let settings = options.follow.servers.zookeeper("top")?;
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::new(format!(
            "top needs a terminal; for programs there is `zklock ls --json {}`",
            options.follow.path
        )));
    }
    let client = settings.connect()?;
    let shared = follow(&client, &options.follow)?;
    let ended = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&ended);
    when_asked_to_end(move || on_signal.store(true, Ordering::SeqCst))
        .map_err(|error| Failure::new(format!("listen for signals: {error}")))?;
    // Reading a terminal that is closed never returns, so this does not go by way of `ended`.
    when_gone(stdin(), || exit(HUNG_UP))?;
    let terminal = ratatui::try_init().map_err(of_terminal)?;
    let board = Board::new(options.follow.path.clone(), settings.hosts, options.sort);
    let done = run(terminal, board, &shared, &ended);
    ratatui::restore();
    // Its session goes with it, and all it watches.
    let _ = client.close().within(GOODBYE).wait();
    done.map(|()| 0).map_err(of_terminal)
}

fn of_terminal(error: std::io::Error) -> Failure {
    Failure::new(format!("the terminal: {error}"))
}

fn run(
    mut terminal: DefaultTerminal,
    mut board: Board,
    shared: &Shared,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    while !ended.load(Ordering::SeqCst) {
        board.update(shared.picture());
        terminal.draw(|frame| screen::draw(frame, &mut board))?;
        // All keys that were pressed meanwhile, before the next frame.
        let mut wait = FRAME;
        while event::poll(wait)? {
            if let Event::Key(key) = event::read()? {
                if !board.press(key) {
                    return Ok(());
                }
            }
            wait = Duration::ZERO;
        }
    }
    Ok(())
}
