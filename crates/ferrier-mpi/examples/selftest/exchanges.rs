//! All-to-all with parts of any length.

use ferrier_mpi::{AllToAllV, Comm, Error, Part, Persistent, RequestSet, Result, Way};

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
        flights(world, scale)?;
    }
    equal(world)?;
    disagreements(world)
}

/// Many in flight, by collectives and by messages, ended in another order on every rank.
fn flights(world: &Comm, scale: usize) -> Result<()> {
    const COUNT: usize = 6;
    let mut cases: Vec<Case> = (0..COUNT).map(|number| Case::new(world, scale * (1 + number % 3))).collect();
    let own = world.duplicate()?;
    let mut flights = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (sent, received) = (&case.sent, &case.received);
        flights.push(RequestSet::new(match number % 2 {
            0 => AllToAllV::new(&own, sent, received, Way::Collective)?,
            _ => AllToAllV::local(&own, sent, received, number as i32)?,
        }));
    }
    // Long messages may be cut into thousands: then a round takes seconds.
    for round in 0..if scale < 1000 { 20 } else { 4 } {
        for (flight, case) in flights.iter_mut().zip(&mut cases) {
            case.recv.fill(0xcc);
            // SAFETY: the buffers are those of the parts, and left alone until the flight is over.
            unsafe { flight.start(case.send.as_ptr(), case.recv.as_mut_ptr())? };
            // SAFETY: as above.
            let again = unsafe { flight.start(case.send.as_ptr(), case.recv.as_mut_ptr()) };
            assert!(!flight.in_flight() || matches!(again, Err(Error::Argument(_))));
        }
        for i in 0..COUNT {
            let number = (i * [1, 5][world.rank() % 2] + round * world.rank()) % COUNT;
            if round % 2 == 0 {
                flights[number].wait()?;
            }
            while !flights[number].test()? {
                std::thread::yield_now();
            }
            assert!(!flights[number].in_flight());
            cases[number].check(&cases[number].recv);
        }
    }
    for (flight, case) in flights.iter_mut().zip(&mut cases) {
        case.recv.fill(0xcc);
        // SAFETY: as above.
        unsafe { flight.run(case.send.as_ptr(), case.recv.as_mut_ptr())? };
        case.check(&case.recv);
    }
    Ok(())
}

/// Blocks of one length, for everybody.
fn equal(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for block in [0, 3, 70_000] {
        let parts: Vec<Part> = (0..size).map(|peer| Part { peer, at: peer * block, len: block }).collect();
        let mut flight = RequestSet::new(AllToAllV::new(world, &parts, &parts, Way::Equal)?);
        let fill = |of: fn(usize, usize, usize) -> u8| -> Vec<u8> {
            (0..size * block).map(|at| of(rank, at / block, at % block)).collect()
        };
        let (send, expected) = (fill(super::value), fill(|rank, peer, at| super::value(peer, rank, at)));
        for blocking in [false, true] {
            let mut recv = vec![0xcc; size * block];
            match blocking {
                // SAFETY: both hold a block for every rank, and are left alone until it is over.
                true => unsafe { flight.run(send.as_ptr(), recv.as_mut_ptr())? },
                // SAFETY: as above.
                false => unsafe { flight.start(send.as_ptr(), recv.as_mut_ptr())? },
            }
            flight.wait()?;
            assert!(recv == expected, "equal blocks of {block} bytes came out as others");
        }
    }
    // Not blocks of one length.
    if size > 1 {
        let parts: Vec<Part> = (0..size).map(|peer| Part { peer, at: 9 * peer, len: 8 }).collect();
        assert!(matches!(AllToAllV::new(world, &parts, &parts, Way::Equal), Err(Error::Argument(_))));
    }
    Ok(())
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
