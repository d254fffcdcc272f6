//! Movers of every member, many in flight at once.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const RANKS: usize = 4;
const TILES: usize = 6;

/// Parts of no, few and many bytes; some tiles are empty.
fn length(from: usize, to: usize, tile: usize) -> usize {
    match (from + 2 * to + tile) % 4 {
        _ if from == to || tile == 4 => 0,
        0 => 0,
        other => other * (7 + 300 * (tile % 2)),
    }
}

fn tiles(rank: usize) -> Vec<Volumes> {
    let tile = |tile: usize| {
        let row = |from| (0..RANKS).map(|to| length(from, to, tile)).collect::<Vec<_>>();
        let pairs: Vec<_> = (0..RANKS).map(row).collect();
        Volumes {
            to: pairs[rank].clone(),
            from: pairs.iter().map(|row| row[rank]).collect(),
            largest: pairs.iter().flatten().copied().max().unwrap_or(0),
            pairs,
            reshape: tile / 3,
            encoded: None,
            via_host: false,
        }
    };
    (0..TILES).map(tile).collect()
}

fn value(from: usize, to: usize, at: usize, tile: usize, round: usize) -> u8 {
    (from * 61 + to * 17 + at * 3 + tile * 29 + round * 101) as u8
}

/// Buffers of a rank and, where a node is shared, of its neighbours.
struct Buffers(Vec<[Vec<u8>; 2]>);

/// A rank's movers with buffers; what `hierarchical` shares is reached through addresses.
struct Rank<'a> {
    comm: &'a Comm,
    volumes: Vec<Volumes>,
    movers: Vec<Box<dyn Exchange>>,
    buffers: Buffers,
    /// Addresses of send and receive buffers of every rank and tile.
    all: Vec<Vec<[usize; 2]>>,
}

impl Rank<'_> {
    fn new<'a>(comm: &'a Comm, name: &str) -> Result<Rank<'a>> {
        let volumes = tiles(comm.rank());
        let Some(make) = find(name)?.make else { panic!("{name} has no movers") };
        let movers = make(comm, &volumes)?;
        movers.iter().try_for_each(|mover| mover.open())?;
        let buffers: Vec<[Vec<u8>; 2]> = movers
            .iter()
            .map(|mover| [vec![0; mover.buffers().send.len], vec![0; mover.buffers().recv.len]])
            .collect();
        let own: Vec<u8> =
            buffers.iter().flatten().flat_map(|buffer| (buffer.as_ptr() as usize).to_le_bytes()).collect();
        let word = |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().unwrap());
        let all = comm.all_gather(&own)?;
        let all =
            all.iter().map(|list| list.chunks(16).map(|two| [word(&two[..8]), word(&two[8..])]).collect());
        Ok(Rank { comm, volumes, movers, buffers: Buffers(buffers), all: all.collect() })
    }

    /// Where the part for, or from, a rank lies: `None` where it does not travel.
    fn place(&self, tile: usize, peer: usize, side: usize) -> Option<*mut u8> {
        let mover = &self.movers[tile];
        if let (Some(loans), 1) = (mover.buffers().remote.as_ref(), side) {
            return Some((self.all[peer][tile][0] + loans.offsets[peer]) as *mut u8);
        }
        let owner = match mover.buffers().sharing.as_ref() {
            Some(sharing) if sharing.nodes[peer] == sharing.nodes[self.comm.rank()] => return None,
            Some(sharing) if side == 0 => sharing.outbox[peer],
            Some(sharing) => sharing.inbox[peer],
            None => self.comm.rank(),
        };
        let at =
            if side == 0 { mover.buffers().send.offsets[peer] } else { mover.buffers().recv.offsets[peer] };
        Some((self.all[owner][tile][side] + at) as *mut u8)
    }

    fn start(&self, tile: usize, round: usize) -> Result<()> {
        let rank = self.comm.rank();
        for (to, &len) in self.volumes[tile].to.iter().enumerate() {
            let Some(place) = self.place(tile, to, 0) else { continue };
            for at in 0..len {
                // SAFETY: a place of our own in a buffer that lives; nobody reads it before all have started.
                unsafe { place.add(at).write(value(rank, to, at, tile, round)) };
            }
        }
        let [send, recv] = &self.buffers.0[tile];
        // SAFETY: as long as the mover says, and left alone until it is done.
        unsafe { self.movers[tile].start(send.as_ptr(), recv.as_ptr().cast_mut(), None) }
    }

    fn check(&self, tile: usize, round: usize) {
        let rank = self.comm.rank();
        for (from, &len) in self.volumes[tile].from.iter().enumerate() {
            let Some(place) = self.place(tile, from, 1) else { continue };
            for at in 0..len {
                // SAFETY: the mover is done, and nobody writes before all have started again.
                let byte = unsafe { place.add(at).read() };
                assert_eq!(byte, value(from, rank, at, tile, round), "rank {rank}, tile {tile}, {round}");
            }
        }
    }
}

const MEMBERS: [&str; 5] = ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"];

/// All tiles in the air, waited for in an order of each rank's own, by tests or by waits.
#[test]
fn many_are_in_flight_and_end_in_any_order() {
    let _watchdog = ferrier_test::watchdog(180);
    for nodes in [1, 2, 4] {
        for name in MEMBERS {
            let outcome = crate::ranks(RANKS).nodes(nodes).run(|comm| {
                let rank = Rank::new(&comm, name)?;
                for round in 0..200 {
                    (0..TILES).try_for_each(|tile| rank.start(tile, round))?;
                    for i in 0..TILES {
                        let tile = (i * [1, 5, 5, 1][comm.rank()] + round * comm.rank()) % TILES;
                        while round % 3 == 0 && !rank.movers[tile].test()? {
                            // Tests of one alone need not move the others.
                            rank.movers.iter().try_for_each(|mover| mover.test().map(drop))?;
                            std::thread::yield_now();
                        }
                        rank.movers[tile].wait()?;
                        rank.check(tile, round);
                    }
                    // Neighbours' buffers are read above, and written to by the next start.
                    comm.barrier()?;
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{name} on {nodes} nodes: {error}"));
        }
    }
}

/// A window of two, as in a pipeline: the next starts when the last but one is done.
#[test]
fn each_is_started_again_a_thousand_times() {
    let _watchdog = ferrier_test::watchdog(180);
    for name in MEMBERS {
        let outcome = crate::ranks(RANKS).nodes(2).run(|comm| {
            let rank = Rank::new(&comm, name)?;
            for step in 0..6 * 1000 {
                let (tile, round) = (step % TILES, step / TILES);
                rank.start(tile, round)?;
                if step > 0 {
                    let (tile, round) = ((step - 1) % TILES, (step - 1) / TILES);
                    rank.movers[tile].wait()?;
                    rank.check(tile, round);
                }
            }
            rank.movers[TILES - 1].wait()
        });
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn what_flies_is_not_started_again() {
    let _watchdog = ferrier_test::watchdog(180);
    for name in MEMBERS {
        let outcome = crate::ranks(RANKS).nodes(4).run(|comm| {
            let rank = Rank::new(&comm, name)?;
            rank.start(0, 0)?;
            let again = rank.start(0, 0);
            assert!(again.is_err_and(|error| error.to_string().contains("in flight")));
            rank.movers[0].wait()?;
            rank.check(0, 0);
            assert!(rank.movers[0].test()?, "nothing is in flight");
            comm.barrier()
        });
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// A rank panics, or leaves, with tiles in the air: the others get an error in
/// the wait, whatever they hid in tests before, and wait in vain for nobody.
#[test]
fn a_rank_that_goes_is_told_to_all() {
    let _watchdog = ferrier_test::watchdog(180);
    for panics in [true, false] {
        for name in MEMBERS {
            let told = AtomicUsize::new(0);
            let work = |comm: &Comm| -> Result<()> {
                let rank = Rank::new(comm, name)?;
                rank.start(0, 0)?;
                if comm.rank() == 2 {
                    assert!(!panics, "planned");
                    // Without a wait: its movers go with it.
                    return Ok(());
                }
                // What a start or a test says of a failed group is said again by the wait.
                (1..TILES).try_for_each(|tile| rank.start(tile, 0)).ok();
                rank.movers.iter().for_each(|mover| drop(mover.test()));
                let outcomes: Vec<_> = rank.movers.iter().map(|mover| mover.wait()).collect();
                outcomes.into_iter().collect()
            };
            let outcome = crate::ranks(RANKS).nodes(4).run(|comm| {
                work(&comm).inspect_err(|_| {
                    told.fetch_add(1, Ordering::SeqCst);
                })
            });
            let error = outcome.expect_err("a rank is gone").to_string();
            assert!(error.contains(if panics { "planned" } else { "rank 2" }), "{name}: {error}");
            assert_eq!(told.into_inner(), RANKS - 1, "{name}, {panics}");
        }
    }
}

/// Over a wire the bytes are the same, and come no sooner than the link allows.
#[test]
fn a_wire_takes_its_time() {
    let _watchdog = ferrier_test::watchdog(180);
    let wire = crate::Wire { gbit_per_s: 0.001, latency_us: 3000.0 };
    for name in MEMBERS {
        let outcome = crate::ranks(RANKS).wire(wire).run(|comm| {
            assert_eq!(comm.node_count(), RANKS);
            let rank = Rank::new(&comm, name)?;
            // Nobody sends before all have read their clocks.
            let start = std::time::Instant::now();
            comm.barrier()?;
            (0..TILES).try_for_each(|tile| rank.start(tile, 0))?;
            (0..TILES).try_for_each(|tile| rank.movers[tile].wait())?;
            let passed = start.elapsed().as_secs_f64();
            (0..TILES).for_each(|tile| rank.check(tile, 0));
            let sums = |of: fn(&Volumes) -> &Vec<usize>| rank.volumes.iter().flat_map(of).sum::<usize>();
            let bytes = sums(|volumes| &volumes.to).max(sums(|volumes| &volumes.from));
            let least = 0.003 + bytes as f64 * 8e-9 / wire.gbit_per_s;
            assert!(passed >= least, "{name}: {passed} s instead of {least} s for {bytes} bytes");
            comm.barrier()
        });
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Inside a node nothing goes over the wire.
#[test]
fn neighbours_need_no_wire() {
    let _watchdog = ferrier_test::watchdog(180);
    let wire = crate::Wire { gbit_per_s: 1e-9, latency_us: 1e9 };
    let outcome = crate::ranks(RANKS).wire(wire).nodes(1).run(|comm| {
        let rank = Rank::new(&comm, "all_to_allv")?;
        rank.start(1, 0)?;
        rank.movers[1].wait()?;
        rank.check(1, 0);
        comm.barrier()
    });
    outcome.unwrap();
    let wrong = crate::Wire { gbit_per_s: 0.0, latency_us: 1.0 };
    assert!(crate::ranks(2).wire(wrong).run(|_| Ok(())).is_err());
}
