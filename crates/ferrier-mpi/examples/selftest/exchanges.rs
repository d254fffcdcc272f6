//! All-to-all with segments of any length.

use ferrier_mpi::{Algorithm, AllToAllV, Comm, Error, Result, Segment};

/// Bytes from one rank to another; 0 for some pairs.
fn length(from: usize, to: usize, scale: usize) -> usize {
    if (from + 2 * to) % 4 == 3 { 0 } else { (from * 3 + to + 1) * scale }
}

/// Segments with gaps of three bytes between them; some empty ones are left out.
fn segments(size: usize, length: impl Fn(usize) -> usize) -> (Vec<Segment>, usize) {
    let (mut segments, mut offset) = (Vec::new(), 2);
    for peer in 0..size {
        let len = length(peer);
        if len > 0 || peer % 2 == 0 {
            segments.push(Segment { peer, offset, len });
        }
        offset += len + 3;
    }
    (segments, offset)
}

struct Case {
    sent: Vec<Segment>,
    received: Vec<Segment>,
    send: Vec<u8>,
    recv: Vec<u8>,
    rank: usize,
}

impl Case {
    fn new(comm: &Comm, scale: usize) -> Case {
        let (rank, size) = (comm.rank(), comm.size());
        let (sent, out) = segments(size, |to| length(rank, to, scale));
        let (received, into) = segments(size, |from| length(from, rank, scale));
        let mut send = vec![0; out];
        for segment in &sent {
            for i in 0..segment.len {
                send[segment.offset + i] = super::value(rank, segment.peer, i);
            }
        }
        Case { sent, received, send, recv: vec![0xcc; into], rank }
    }

    fn check(&self, recv: &[u8]) {
        let mut expected = vec![0xcc; recv.len()];
        for segment in &self.received {
            for i in 0..segment.len {
                expected[segment.offset + i] = super::value(segment.peer, self.rank, i);
            }
        }
        assert!(recv == expected, "an exchange received wrong bytes");
    }
}

pub fn all(world: &Comm) -> Result<()> {
    for scale in [0, 1, 9, 5000] {
        single(world, scale)?;
        for algorithm in [Algorithm::Collective, Algorithm::Messages] {
            prepared(world, scale, algorithm)?;
        }
        in_flight(world, scale)?;
    }
    equal(world)?;
    disagreements(world)?;
    ended_by_drop(world)?;
    message_errors(world)
}

/// Many in flight, by collectives and by messages; each rank waits in another order.
fn in_flight(world: &Comm, scale: usize) -> Result<()> {
    const COUNT: usize = 6;
    let mut cases: Vec<Case> = (0..COUNT).map(|number| Case::new(world, scale * (1 + number % 3))).collect();
    let own = world.duplicate()?;
    let mut exchanges = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (sent, received) = (&case.sent, &case.received);
        exchanges.push(match number % 2 {
            0 => AllToAllV::new(&own, sent, received, Algorithm::Collective)?,
            _ => AllToAllV::local(&own, sent, received, number as i32)?,
        });
    }
    // Long messages may be split into thousands of pieces: then a round takes seconds.
    for round in 0..if scale < 1000 { 20 } else { 4 } {
        for (exchange, case) in exchanges.iter_mut().zip(&mut cases) {
            case.recv.fill(0xcc);
            // SAFETY: the buffers hold the segments, and are not accessed until completion.
            unsafe { exchange.start(case.send.as_ptr(), case.recv.as_mut_ptr(), None)? };
            // SAFETY: as above.
            let again = unsafe { exchange.start(case.send.as_ptr(), case.recv.as_mut_ptr(), None) };
            assert!(!exchange.in_flight() || matches!(again, Err(Error::Argument(_))));
        }
        for i in 0..COUNT {
            let number = (i * [1, 5][world.rank() % 2] + round * world.rank()) % COUNT;
            if round % 2 == 0 {
                exchanges[number].wait()?;
            }
            while !exchanges[number].test()? {
                std::thread::yield_now();
            }
            assert!(!exchanges[number].in_flight());
            cases[number].check(&cases[number].recv);
        }
    }
    for (exchange, case) in exchanges.iter_mut().zip(&mut cases) {
        case.recv.fill(0xcc);
        // SAFETY: as above.
        unsafe { exchange.run_at(case.send.as_ptr(), case.recv.as_mut_ptr())? };
        case.check(&case.recv);
    }
    Ok(())
}

/// Blocks of one length, for every rank.
fn equal(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for block in [0, 3, 70_000] {
        let segments: Vec<Segment> =
            (0..size).map(|peer| Segment { peer, offset: peer * block, len: block }).collect();
        let mut exchange = AllToAllV::new(world, &segments, &segments, Algorithm::Equal)?;
        let fill = |of: fn(usize, usize, usize) -> u8| -> Vec<u8> {
            (0..size * block).map(|at| of(rank, at / block, at % block)).collect()
        };
        let (send, expected) = (fill(super::value), fill(|rank, peer, at| super::value(peer, rank, at)));
        for blocking in [false, true] {
            let mut recv = vec![0xcc; size * block];
            match blocking {
                // SAFETY: both hold a block for every rank, and are not accessed until completion.
                true => unsafe { exchange.run_at(send.as_ptr(), recv.as_mut_ptr())? },
                // SAFETY: as above.
                false => unsafe { exchange.start(send.as_ptr(), recv.as_mut_ptr(), None)? },
            }
            exchange.wait()?;
            assert!(recv == expected, "equal blocks of {block} bytes: wrong bytes");
        }
    }
    // Not blocks of one length.
    if size > 1 {
        let segments: Vec<Segment> =
            (0..size).map(|peer| Segment { peer, offset: 9 * peer, len: 8 }).collect();
        assert!(matches!(
            AllToAllV::new(world, &segments, &segments, Algorithm::Equal),
            Err(Error::Argument(_))
        ));
    }
    Ok(())
}

fn single(world: &Comm, scale: usize) -> Result<()> {
    let mut case = Case::new(world, scale);
    world.all_to_allv(&case.send, &case.sent, &mut case.recv, &case.received)?;
    case.check(&case.recv);
    Ok(())
}

fn prepared(world: &Comm, scale: usize, algorithm: Algorithm) -> Result<()> {
    let mut case = Case::new(world, scale);
    let mut exchange = AllToAllV::new(world, &case.sent, &case.received, algorithm)?;
    for _ in 0..3 {
        case.recv.fill(0xcc);
        exchange.run(&case.send, &mut case.recv)?;
        case.check(&case.recv);
    }
    // In flight: tests, then wait.
    case.recv.fill(0xcc);
    // SAFETY: the buffers hold the segments, and are not accessed until completion.
    unsafe { exchange.start(case.send.as_ptr(), case.recv.as_mut_ptr(), None)? };
    while !exchange.test()? {
        std::thread::yield_now();
    }
    exchange.wait()?;
    case.check(&case.recv);
    let refused = exchange.run(&[], &mut []);
    assert!(scale == 0 || case.sent.is_empty() || matches!(refused, Err(Error::Argument(_))));
    if exchange.is_point_to_point() {
        // (Receives of messages are cancelled when dropped; so not here.)
        return Ok(());
    }
    // Started and dropped: that completes it.
    case.recv.fill(0xcc);
    // SAFETY: as above.
    unsafe { exchange.start(case.send.as_ptr(), case.recv.as_mut_ptr(), None)? };
    drop(exchange);
    case.check(&case.recv);
    Ok(())
}

/// Invalid arguments of one rank are an error on every rank.
fn disagreements(world: &Comm) -> Result<()> {
    let last = world.rank() + 1 == world.size();
    let good = [Segment { peer: world.rank(), offset: 0, len: 4 }];
    let short = [Segment { peer: world.rank(), offset: 0, len: 3 }];
    let outside = [Segment { peer: world.size(), offset: 0, len: 4 }];
    for bad in [&short, &outside] {
        let sent = if last { bad } else { &good };
        let refused = AllToAllV::new(world, sent, &good, Algorithm::Collective);
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    if world.size() > 1 {
        let algorithm = if last { Algorithm::Messages } else { Algorithm::Collective };
        assert!(matches!(AllToAllV::new(world, &good, &good, algorithm), Err(Error::Argument(_))));
    }
    Ok(())
}

/// A receive whose message never comes.
fn ended_by_drop(world: &Comm) -> Result<()> {
    let size = world.size();
    if size > 1 {
        let own = world.duplicate()?;
        let mut never = [0_u8; 4];
        let received = [Segment { peer: (own.rank() + 1) % size, offset: 0, len: 4 }];
        let mut exchange = AllToAllV::local(&own, &[], &received, 77)?;
        // SAFETY: the buffer holds the segment, and is not accessed until the exchange is dropped.
        unsafe { exchange.start(std::ptr::null(), never.as_mut_ptr(), None)? };
        assert!(!exchange.test()? && world.mpi().live().requests >= 1);
        let refused = exchange.run(&[], &mut [0; 4]);
        assert!(exchange.in_flight() && matches!(refused, Err(Error::Argument(_))));
        drop(exchange);
    }
    assert_eq!(world.mpi().live().requests, 0);
    world.barrier()
}

fn message_errors(world: &Comm) -> Result<()> {
    let size = world.size();
    let outside = [Segment { peer: size, offset: 0, len: 4 }];
    assert!(matches!(AllToAllV::local(world, &outside, &[], 1), Err(Error::Argument(_))));
    assert!(matches!(AllToAllV::local(world, &[], &[], -77), Err(Error::Argument(_))));
    if size == 1 {
        return Ok(());
    }
    // A message that does not fit: MPI's own text. It goes in one piece under every limit that tests set: a second
    // piece would never be received, and would wait for the next communicator that gets the number of this one
    // (Open MPI 5 then takes it for one of that communicator's messages, which are lost for it).
    let own = world.duplicate()?;
    let (right, left) = ((own.rank() + 1) % size, (own.rank() + size - 1) % size);
    let sent = [Segment { peer: right, offset: 0, len: 4 }];
    let received = [Segment { peer: left, offset: 0, len: 2 }];
    let mut exchange = AllToAllV::local(&own, &sent, &received, 5)?;
    match exchange.run(&[5; 4], &mut [0; 2]) {
        Err(Error::Mpi { call, text, .. }) => assert!(call == "MPI_Wait" && !text.is_empty()),
        other => panic!("a message that does not fit: {other:?}"),
    }
    assert!(!exchange.in_flight() && world.mpi().live().requests == 0);
    Ok(())
}
