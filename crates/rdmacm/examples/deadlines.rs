//! Deadlines, retries and stopping from another thread: `deadlines 10.1.0.7:7471`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use rdmacm::{Connector, Listener, RetryPolicy};

fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).ok_or("usage: deadlines ADDRESS")?;
    let listener = Listener::bind(&*text)?;
    let address = listener.local_addr();

    // No peer comes: the call returns at its deadline.
    let timed_out = |error: &rdmacm::Error| error.is_timeout();
    let accepted = listener.accept(Duration::from_millis(50));
    println!(
        "accept timed out: {}",
        accepted.is_err_and(|error| timed_out(&error))
    );

    // Nobody accepts: one deadline holds for name, address, route and reply together.
    let connector = Connector::new(address).deadline(Duration::from_millis(200));
    let connected = connector.connect();
    println!(
        "connect timed out: {}",
        connected.is_err_and(|error| timed_out(&error))
    );
    drop(listener);

    // Nobody listens: retried after a pause, twice, then the last error.
    let policy = RetryPolicy::attempts(3).max_backoff(Duration::from_millis(50));
    let connector = Connector::new(address).retry(policy);
    let connected = connector.connect();
    println!(
        "tried three times: {}",
        connected.is_err_and(|error| error.attempts() == 3)
    );

    // A wait without a deadline, which another thread ends.
    let listener = Listener::bind(address.with_port(0))?;
    let stop = listener.stop_handle();
    let started = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        stop.stop();
    });
    let served = listener.incoming().count();
    println!(
        "stopped: {}",
        served == 0 && started.elapsed() < Duration::from_secs(5)
    );
    Ok(())
}
