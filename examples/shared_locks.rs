//! Locks with several holders: readers of a catalogue, and at most three transfers at a time.
//!
//! Run: `cargo run -p zklock-examples --bin shared_locks 127.0.0.1:2181`

use zklock::{Access, Client};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let zk = Client::connect(&hosts).wait()?;
    // Paths for this run only.
    let path = |name| format!("/examples/shared-{}/{name}", std::process::id());

    let catalogue = zk.read_write(&path("catalogue"));
    let readers = [catalogue.read().acquire().wait()?, catalogue.read().acquire().wait()?];
    let is_taken = catalogue.write().try_acquire().wait()?.is_none();
    println!("two read, and a writer is {}", if is_taken { "kept out" } else { "let in" });
    drop(readers);
    let writing = catalogue.write().acquire().wait()?;
    println!("one writes, once both have finished");
    writing.release().wait()?;

    // Others can read while this client checks whether there is anything to write.
    let looking = catalogue.upgradeable().acquire().wait()?;
    let reading = catalogue.read().acquire().wait()?;
    println!("one looks whether to write, while another reads");
    drop(reading);
    looking.upgrade().wait()?;
    let is_taken = catalogue.read().try_acquire().wait()?.is_none();
    println!("it writes, and a reader is {}", if is_taken { "kept out" } else { "let in" });
    looking.downgrade(Access::Read).wait()?;
    let reading = catalogue.read().acquire().wait()?;
    println!("it reads again, and so does another");
    drop((looking, reading));

    // Three permits for all. This transfer takes two.
    let transfers = zk.semaphore(&path("transfers"), 3);
    let guards = [transfers.permits(2).acquire().wait()?, transfers.permit().acquire().wait()?];
    let is_taken = transfers.permit().try_acquire().wait()?.is_none();
    println!(
        "all permits are taken, and another transfer is {}",
        if is_taken { "kept out" } else { "let in" }
    );
    transfers.set_limit(4).wait()?;
    let another = transfers.permit().acquire().wait()?;
    println!("with {} permits it is let in", transfers.limit().wait()?);
    drop((guards, another));
    zk.close().wait()?;
    Ok(())
}
