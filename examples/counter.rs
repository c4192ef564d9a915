//! Assigns each number once, even if replies are lost.
//!
//! Run: `cargo run -p zklock-examples --bin counter 127.0.0.1:2181 /examples/counter`

use zklock::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let hosts = arguments.next().unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let path = arguments.next().unwrap_or_else(|| "/examples/counter".to_owned());
    let counter = Client::connect(&hosts).wait()?.counter(&path);
    match counter.get_and_add(1).wait() {
        Ok(mine) => println!("the number {mine} is mine"),
        // The number may be used up without an owner. A retry takes another one.
        Err(error) if error.is_outcome_unknown() => println!("perhaps one is lost: {error}"),
        Err(error) => return Err(error.into()),
    }
    let before = counter.compare_and_set(-1, 0).wait()?;
    println!(
        "{}",
        if before == -1 { "set back to 0".to_owned() } else { format!("{before} so far") }
    );
    Ok(())
}
