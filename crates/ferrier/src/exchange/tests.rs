//! All exchanges, many in flight at once.

use super::*;
use crate::Result;
use crate::transport::Comm;
use ferrier_plan::messages::{EncodedChunks, SegmentTable, Volumes};
use std::sync::atomic::{AtomicUsize, Ordering};

const RANKS: usize = 4;
const TILES: usize = 6;

/// Segments of no, few and many bytes; some tiles are empty.
fn length(from: usize, to: usize, tile: usize) -> usize {
    match (from + 2 * to + tile) % 4 {
        _ if from == to || tile == 4 => 0,
        0 => 0,
        other => other * (7 + 300 * (tile % 2)),
    }
}

fn tiles(rank: usize) -> Vec<Volumes> {
    let tile = |tile: usize| {
        let table = SegmentTable::of(RANKS, move |from, to| length(from, to, tile));
        Volumes { reshape: tile / 3, ..Volumes::new(table, rank) }
    };
    (0..TILES).map(tile).collect()
}

fn value(from: usize, to: usize, at: usize, tile: usize, round: usize) -> u8 {
    (from * 61 + to * 17 + at * 3 + tile * 29 + round * 101) as u8
}

/// A rank's exchanges with buffers. Buffers that `hierarchical` shares are accessed by address.
struct Rank<'a> {
    comm: &'a Comm,
    volumes: Vec<Volumes>,
    exchanges: Vec<Exchange>,
    /// Send and receive buffer of each tile.
    buffers: Vec<[Vec<u8>; 2]>,
    /// Addresses of send and receive buffers of every rank and tile.
    all: Vec<Vec<[usize; 2]>>,
}

impl Rank<'_> {
    fn new<'a>(comm: &'a Comm, name: &str) -> Result<Rank<'a>> {
        // Passes that load from a window must do so before the next group of tiles uses it; here all are loaded late.
        let via_host = name == "ring";
        let volumes = tiles(comm.rank()).into_iter().map(|tile| Volumes { via_host, ..tile });
        let volumes: Vec<Volumes> = volumes.collect();
        let Some(make) = find(name)?.make else { panic!("{name} sends no messages") };
        let exchanges = make(comm, &volumes, PacketPolicy::default())?;
        exchanges.iter().try_for_each(Exchange::open)?;
        let buffers: Vec<[Vec<u8>; 2]> = exchanges
            .iter()
            .map(|exchange| [vec![0; exchange.buffers().send.len], vec![0; exchange.buffers().recv.len]])
            .collect();
        let own: Vec<u8> =
            buffers.iter().flatten().flat_map(|buffer| (buffer.as_ptr() as usize).to_le_bytes()).collect();
        let word = |bytes: &[u8]| usize::from_le_bytes(bytes.try_into().unwrap());
        let all = comm.all_gather(&own)?;
        let all =
            all.iter().map(|list| list.chunks(16).map(|two| [word(&two[..8]), word(&two[8..])]).collect());
        Ok(Rank { comm, volumes, exchanges, buffers, all: all.collect() })
    }

    /// The address of the segment for (side 0) or from (side 1) a rank; `None` where it is not sent.
    fn place(&self, tile: usize, peer: usize, side: usize) -> Option<*mut u8> {
        let exchange = &self.exchanges[tile];
        if let (Some(remote), 1) = (exchange.buffers().remote.as_ref(), side) {
            return Some((self.all[peer][tile][0] + remote.offsets[peer]) as *mut u8);
        }
        let owner = match exchange.buffers().sharing.as_ref() {
            Some(sharing) if sharing.nodes[peer] == sharing.nodes[self.comm.rank()] => return None,
            Some(sharing) if side == 0 => sharing.outbox[peer],
            Some(sharing) => sharing.inbox[peer],
            None => self.comm.rank(),
        };
        let at = if side == 0 {
            exchange.buffers().send.offsets[peer]
        } else {
            exchange.buffers().recv.offsets[peer]
        };
        Some((self.all[owner][tile][side] + at) as *mut u8)
    }

    fn start(&self, tile: usize, round: usize) -> Result<()> {
        let rank = self.comm.rank();
        for (to, &len) in self.volumes[tile].to.iter().enumerate() {
            let Some(place) = self.place(tile, to, 0) else { continue };
            for at in 0..len {
                // SAFETY: this rank's segment of a buffer that lives; no rank reads it before all have started.
                unsafe { place.add(at).write(value(rank, to, at, tile, round)) };
            }
        }
        let [send, recv] = &self.buffers[tile];
        // SAFETY: as long as the exchange says, and not accessed until completion.
        unsafe { self.exchanges[tile].start(send.as_ptr(), recv.as_ptr().cast_mut(), None) }
    }

    fn check(&self, tile: usize, round: usize) {
        let rank = self.comm.rank();
        for (from, &len) in self.volumes[tile].from.iter().enumerate() {
            let Some(place) = self.place(tile, from, 1) else { continue };
            for at in 0..len {
                // SAFETY: the exchange is complete, and no rank writes before all have started again.
                let byte = unsafe { place.add(at).read() };
                assert_eq!(byte, value(from, rank, at, tile, round), "rank {rank}, tile {tile}, {round}");
            }
        }
    }
}

const NAMES: [&str; 5] = ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"];

/// All tiles are in flight; each rank waits for them in its own order, by tests or by waits.
#[test]
fn many_exchanges_complete_in_any_order() {
    let _watchdog = ferrier_test::watchdog(180);
    for nodes in [1, 2, 4] {
        for name in NAMES {
            let outcome = crate::ranks(RANKS).nodes(nodes).run(|comm| {
                let rank = Rank::new(&comm, name)?;
                for round in 0..200 {
                    (0..TILES).try_for_each(|tile| rank.start(tile, round))?;
                    for i in 0..TILES {
                        let tile = (i * [1, 5, 5, 1][comm.rank()] + round * comm.rank()) % TILES;
                        while round % 3 == 0 && !rank.exchanges[tile].test()? {
                            // Tests of one make no progress on the others.
                            rank.exchanges.iter().try_for_each(|exchange| exchange.test().map(drop))?;
                            std::thread::yield_now();
                        }
                        rank.exchanges[tile].wait()?;
                        rank.check(tile, round);
                    }
                    // Neighbours' buffers are read above, and written before the next start.
                    comm.barrier()?;
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{name} on {nodes} nodes: {error}"));
        }
    }
}

/// Two in flight, as in a pipeline: the next one starts when the last but one is complete.
#[test]
fn exchanges_can_be_started_a_thousand_times() {
    let _watchdog = ferrier_test::watchdog(180);
    for name in NAMES {
        let outcome = crate::ranks(RANKS).nodes(2).run(|comm| {
            let rank = Rank::new(&comm, name)?;
            for step in 0..6 * 1000 {
                let (tile, round) = (step % TILES, step / TILES);
                rank.start(tile, round)?;
                if step > 0 {
                    let (tile, round) = ((step - 1) % TILES, (step - 1) / TILES);
                    rank.exchanges[tile].wait()?;
                    rank.check(tile, round);
                }
            }
            rank.exchanges[TILES - 1].wait()
        });
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn an_exchange_in_flight_cannot_be_started() {
    let _watchdog = ferrier_test::watchdog(180);
    for name in NAMES {
        let outcome = crate::ranks(RANKS).nodes(4).run(|comm| {
            let rank = Rank::new(&comm, name)?;
            rank.start(0, 0)?;
            let again = rank.start(0, 0);
            assert!(again.is_err_and(|error| error.to_string().contains("in flight")));
            rank.exchanges[0].wait()?;
            rank.check(0, 0);
            assert!(rank.exchanges[0].test()?, "nothing is in flight");
            comm.barrier()
        });
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// A rank panics, or exits, with tiles in flight: the others get an error from `wait`, also where a test returned it
/// before, and no rank waits forever.
#[test]
fn all_ranks_get_an_error_when_one_exits() {
    let _watchdog = ferrier_test::watchdog(180);
    for panics in [true, false] {
        for name in NAMES {
            let errors = AtomicUsize::new(0);
            let work = |comm: &Comm| -> Result<()> {
                let rank = Rank::new(comm, name)?;
                rank.start(0, 0)?;
                if comm.rank() == 2 {
                    assert!(!panics, "planned");
                    // Without a wait: drops its exchanges in flight.
                    return Ok(());
                }
                // An error of a start or a test is returned again by the wait.
                (1..TILES).try_for_each(|tile| rank.start(tile, 0)).ok();
                rank.exchanges.iter().for_each(|exchange| drop(exchange.test()));
                let outcomes: Vec<_> = rank.exchanges.iter().map(|exchange| exchange.wait()).collect();
                outcomes.into_iter().collect()
            };
            let outcome = crate::ranks(RANKS).nodes(4).run(|comm| {
                work(&comm).inspect_err(|_| {
                    errors.fetch_add(1, Ordering::SeqCst);
                })
            });
            let error = outcome.expect_err("a rank is gone").to_string();
            assert!(error.contains(if panics { "planned" } else { "rank 2" }), "{name}: {error}");
            assert_eq!(errors.into_inner(), RANKS - 1, "{name}, {panics}");
        }
    }
}

/// Over a simulated network the bytes are the same, and arrive no sooner than the links allow.
#[test]
fn a_wire_delays_messages() {
    let _watchdog = ferrier_test::watchdog(180);
    let wire = crate::Wire { gbit_per_s: 0.001, latency_us: 3000.0 };
    for name in NAMES {
        let outcome = crate::ranks(RANKS).wire(wire).run(|comm| {
            assert_eq!(comm.node_count(), RANKS);
            let rank = Rank::new(&comm, name)?;
            // No rank sends before all have read their clocks.
            let start = std::time::Instant::now();
            comm.barrier()?;
            (0..TILES).try_for_each(|tile| rank.start(tile, 0))?;
            (0..TILES).try_for_each(|tile| rank.exchanges[tile].wait())?;
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

/// Messages inside a node do not use the simulated network.
#[test]
fn messages_inside_a_node_use_no_wire() {
    let _watchdog = ferrier_test::watchdog(180);
    let wire = crate::Wire { gbit_per_s: 1e-9, latency_us: 1e9 };
    let outcome = crate::ranks(RANKS).wire(wire).nodes(1).run(|comm| {
        let rank = Rank::new(&comm, "all_to_allv")?;
        rank.start(1, 0)?;
        rank.exchanges[1].wait()?;
        rank.check(1, 0);
        comm.barrier()
    });
    outcome.unwrap();
    let wrong = crate::Wire { gbit_per_s: 0.0, latency_us: 1.0 };
    assert!(crate::ranks(2).wire(wrong).run(|_| Ok(())).is_err());
}

/// Tiles of one chunk each, encoded with variable length.
fn variable_tiles(rank: usize) -> Vec<Volumes> {
    let coded = |volumes: Volumes| {
        let chunks = |lens: &[usize]| lens.iter().map(|&len| usize::from(len > 0)).collect();
        let (to, from) = (chunks(&volumes.to), chunks(&volumes.from));
        let slot = volumes.table.largest().max(1);
        Volumes { encoded: Some(EncodedChunks { slot, varies: true, to, from }), ..volumes }
    };
    tiles(rank).into_iter().map(coded).collect()
}

#[test]
fn substitutions_are_noted_once() {
    let outcome = crate::ranks(RANKS).nodes(2).run(|comm| {
        for name in NAMES {
            let Some(make) = find(name)?.make else { panic!("{name} sends no messages") };
            assert!(
                notes(&make(&comm, &tiles(comm.rank()), PacketPolicy::default())?).is_empty(),
                "{name} does what was asked for"
            );
            let noted = notes(&make(&comm, &variable_tiles(comm.rank()), PacketPolicy::default())?);
            match name {
                "all_to_all" | "all_to_allv" => {
                    let text =
                        format!("{name}: the codec has variable length; using point-to-point messages");
                    assert_eq!(noted, [text]);
                }
                _ => assert!(noted.is_empty(), "{name}: {noted:?}"),
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn an_exchange_of_variable_length_needs_a_coder() {
    let outcome = crate::ranks(2).run(|comm| {
        let table = SegmentTable::of(2, |from, to| if from == to { 0 } else { 64 });
        let volumes = Volumes::new(table, comm.rank());
        let chunks = || volumes.to.iter().map(|len| len / 64).collect();
        let encoded = Some(EncodedChunks { slot: 64, varies: true, to: chunks(), from: chunks() });
        let volumes = Volumes { encoded, ..volumes };
        for name in ["point_to_point", "ring"] {
            let Some(make) = find(name)?.make else { panic!("{name} sends no messages") };
            let exchanges = make(&comm, std::slice::from_ref(&volumes), PacketPolicy::default())?;
            exchanges.iter().try_for_each(Exchange::open)?;
            // SAFETY: nothing is started without a coder.
            let started = unsafe { exchanges[0].start(std::ptr::null(), std::ptr::null_mut(), None) };
            assert!(started.is_err_and(|error| error.to_string().contains("without its coder")), "{name}");
        }
        comm.barrier()
    });
    outcome.unwrap();
}

#[test]
fn plans_report_substitutions() {
    let problem = crate::Problem::c2c([8, 8, 8]);
    for name in ["all_to_all", "all_to_allv"] {
        let outcome = crate::ranks(2).nodes(2).run(|comm| {
            let choice = crate::Choice::default().exchange(name).codec("lossless");
            let plan =
                crate::Planner::new(&problem).choice(choice).without_wisdom().draft::<f64>(&comm)?.build()?;
            let expected = format!("{name}: the codec has variable length; using point-to-point messages");
            assert!(plan.notes().contains(&expected), "{:?}", plan.notes());
            Ok(())
        });
        outcome.unwrap();
    }
}
