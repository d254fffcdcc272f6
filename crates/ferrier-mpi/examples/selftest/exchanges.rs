//! All-to-all with parts of any length.

use ferrier_mpi::{AllToAllV, Comm, Error, Part, Persistent, Result, Way};

/// Bytes from one rank to another: some pairs have nothing to say.
fn length(from: usize, to: usize, scale: usize) -> usize {
    if (from + 2 * to) % 4 == 3 { 0 } else { (from * 3 + to + 1) * scale }
}

/// Parts with gaps of three bytes between them; ranks with nothing to say are left out.
fn parts(size: usize, length: impl Fn(usize) -> usize) -> (Vec<Part>, usize) {
    let (mut parts, mut at) = (Vec::new(), 2);
    for peer in 0..size {
        let len = length(peer);
        if len > 0 || peer % 2 == 0 {
            parts.push(Part { peer, at, len });
        }
        at += len + 3;
    }
    (parts, at)
}

struct Case {
    sent: Vec<Part>,
    received: Vec<Part>,
    send: Vec<u8>,
    recv: Vec<u8>,
    rank: usize,
}

impl Case {
    fn new(comm: &Comm, scale: usize) -> Case {
        let (rank, size) = (comm.rank(), comm.size());
        let (sent, out) = parts(size, |to| length(rank, to, scale));
        let (received, into) = parts(size, |from| length(from, rank, scale));
        let mut send = vec![0; out];
        for part in &sent {
            for i in 0..part.len {
                send[part.at + i] = super::value(rank, part.peer, i);
            }
        }
        Case { sent, received, send, recv: vec![0xcc; into], rank }
    }

    fn check(&self, recv: &[u8]) {
        let mut expected = vec![0xcc; recv.len()];
        for part in &self.received {
            for i in 0..part.len {
                expected[part.at + i] = super::value(part.peer, self.rank, i);
            }
        }
        assert!(recv == expected, "an exchange gave other bytes");
    }
}

pub fn all(world: &Comm) -> Result<()> {
    for scale in [0, 1, 9, 5000] {
        single(world, scale)?;
        for way in [Way::Collective, Way::Messages] {
            prepared(world, scale, way)?;
        }
        persistent(world, scale)?;
    }
    disagreements(world)
}

fn single(world: &Comm, scale: usize) -> Result<()> {
    let mut case = Case::new(world, scale);
    world.all_to_allv(&case.send, &case.sent, &mut case.recv, &case.received)?;
    case.check(&case.recv);
    Ok(())
}

fn prepared(world: &Comm, scale: usize, way: Way) -> Result<()> {
    let mut case = Case::new(world, scale);
    let exchange = AllToAllV::new(world, &case.sent, &case.received, way)?;
    for _ in 0..3 {
        case.recv.fill(0xcc);
        exchange.run(&case.send, &mut case.recv)?;
        case.check(&case.recv);
    }
    // In flight: tests, then wait.
    case.recv.fill(0xcc);
    world.scope(|scope| {
        let request = scope.all_to_allv(&exchange, &case.send, &mut case.recv)?;
        while !request.test()? {
            std::thread::yield_now();
        }
        let complete = request.wait()?;
        assert!(complete.received.is_none());
        Ok(())
    })?;
    case.check(&case.recv);
    // Part by part, each once.
    case.recv.fill(0xcc);
    let rank = world.rank();
    let mut came = vec![0; world.size()];
    world.scope(|scope| {
        let mut request = scope.all_to_allv(&exchange, &case.send, &mut case.recv)?;
        while let Some((from, bytes)) = request.next_arrival()? {
            came[from] += 1;
            assert!(bytes.iter().enumerate().all(|(i, &byte)| byte == super::value(from, rank, i)));
            assert_eq!(bytes.len(), length(from, rank, scale));
        }
        Ok(())
    })?;
    assert!(case.received.iter().all(|part| came[part.peer] == 1));
    assert_eq!(came.iter().sum::<usize>(), case.received.len());
    case.check(&case.recv);
    // Started and left alone: the scope ends it.
    if exchange.arrives_in_parts() {
        // (Receives of messages are cancelled by that; so not here.)
        return Ok(());
    }
    case.recv.fill(0xcc);
    world.scope(|scope| {
        std::mem::forget(scope.all_to_allv(&exchange, &case.send, &mut case.recv)?);
        Ok(())
    })?;
    case.check(&case.recv);
    let refused = exchange.run(&[], &mut []);
    assert!(scale == 0 || case.sent.is_empty() || matches!(refused, Err(Error::Argument(_))));
    Ok(())
}

fn persistent(world: &Comm, scale: usize) -> Result<()> {
    let case = Case::new(world, scale);
    let exchange = AllToAllV::new(world, &case.sent, &case.received, Way::Collective)?;
    if exchange.arrives_in_parts() || !world.mpi().has_persistent() {
        let refused = Persistent::new(exchange, case.send.clone(), case.recv.clone());
        assert!(matches!(refused, Err(Error::Missing { .. })));
        return Ok(());
    }
    let mut exchange = Persistent::new(exchange, vec![0; case.send.len()], case.recv.clone())?;
    assert_eq!(world.mpi().live().requests, 1);
    for round in 0..3 {
        exchange.send_buffer()?.copy_from_slice(&case.send);
        exchange.start()?;
        assert!(exchange.send_buffer().is_err() && exchange.received().is_err() && exchange.start().is_err());
        if round == 1 {
            while !exchange.test()? {
                std::thread::yield_now();
            }
        }
        exchange.wait()?;
        case.check(exchange.received()?);
    }
    // Dropped while it is active.
    exchange.start()?;
    drop(exchange);
    assert_eq!(world.mpi().live().requests, 0);
    Ok(())
}

/// What one rank gets wrong is an error on every rank.
fn disagreements(world: &Comm) -> Result<()> {
    let last = world.rank() + 1 == world.size();
    let good = [Part { peer: world.rank(), at: 0, len: 4 }];
    let short = [Part { peer: world.rank(), at: 0, len: 3 }];
    let outside = [Part { peer: world.size(), at: 0, len: 4 }];
    for bad in [&short, &outside] {
        let sent = if last { bad } else { &good };
        let refused = AllToAllV::new(world, sent, &good, Way::Collective);
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    if world.size() > 1 {
        let way = if last { Way::Messages } else { Way::Collective };
        assert!(matches!(AllToAllV::new(world, &good, &good, way), Err(Error::Argument(_))));
    }
    Ok(())
}
