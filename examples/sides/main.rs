//! Writes the logs of a session's sides, of any length, for measurements of `hitreg merge`.
//!
//! ```sh
//! cargo run --release --example sides -- 2400 16 sides && hitreg merge sides/*.hitlog -o match.hitlog
//! ```

mod write;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, players, folder] = &args[..] else { return Err("usage: sides SECONDS PLAYERS FOLDER".into()) };
    write::write(seconds.parse()?, players.parse()?, Path::new(folder))
}
