// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// threads.rs -- threads, locks and TCP of Rust; the keys of a HashMap have a random order:
// threads [ADDRESS of the server]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn serve() {
    let listener = TcpListener::bind("0.0.0.0:7500").unwrap();
    let total = Arc::new((Mutex::new(0u64), Condvar::new()));
    let mut threads = vec![];
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        let total = total.clone();
        threads.push(thread::spawn(move || {
            let mut bytes = [0u8; 8];
            stream.read_exact(&mut bytes).unwrap();
            *total.0.lock().unwrap() += u64::from_le_bytes(bytes);
            total.1.notify_all();
            stream.write_all(&bytes).unwrap();
        }));
    }
    let mut sum = total.0.lock().unwrap();
    while *sum < 3 {
        sum = total.1.wait(sum).unwrap();
    }
    println!("total {}", *sum);
    drop(sum);
    for each in threads {
        each.join().unwrap();
    }
}

fn request(server: String, number: u64) {
    let mut stream = TcpStream::connect((server.as_str(), 7500)).unwrap();
    stream.write_all(&number.to_le_bytes()).unwrap();
    let mut bytes = [0u8; 8];
    stream.read_exact(&mut bytes).unwrap();
    let map: HashMap<u64, u64> = (0..5).map(|each| (each, each)).collect();
    println!("{:?}", map.keys().collect::<Vec<_>>());
}

fn main() {
    let Some(server) = std::env::args().nth(1) else {
        return serve();
    };
    let threads: Vec<_> = (1..3)
        .map(|number| {
            let server = server.clone();
            thread::spawn(move || request(server, number))
        })
        .collect();
    for each in threads {
        each.join().unwrap();
    }
}
