//! What a plan says it did, and when.

use ferrier::{Choice, Event, EventKind, LayoutSpec, Overlap, Planner, Problem, Tiling, Wire};
use ferrier_test::watchdog;

/// The events of a forward transform on two ranks.
fn events(after: bool) -> Vec<Vec<Event>> {
    let problem = Problem::c2c([8, 8, 12]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let tiling = Tiling::new(5).cut(2).window(2).polls(1).after(after);
    let choice = Choice::new().exchange("all_to_allv").axes([2, 1, 0]).overlap(Overlap::uniform(tiling));
    let run = |comm: ferrier::Comm| {
        let mut plan = Planner::new(&problem).choice(choice.clone()).draft::<f64>(&comm)?.build()?;
        assert!(plan.events().is_empty());
        let (input, mut output) = (plan.make_input()?, plan.make_output()?);
        plan.forward(&input, &mut output)?;
        plan.forward(&input, &mut output)?;
        Ok(plan.events())
    };
    ferrier::ranks(2).run(run).unwrap()
}

fn tiles(events: &[Event], kind: EventKind, name: &str) -> Vec<Option<usize>> {
    let own = events.iter().filter(|event| event.kind == kind && event.name.starts_with(name));
    own.map(|event| event.tile).collect()
}

#[test]
fn every_tile_is_seen_once_and_in_order() {
    let _watchdog = watchdog(60);
    for after in [true, false] {
        for events in events(after) {
            let all = [Some(0), Some(1), Some(2)];
            assert_eq!(tiles(&events, EventKind::Post, ""), all);
            assert_eq!(tiles(&events, EventKind::Wait, ""), all);
            assert_eq!(tiles(&events, EventKind::Transform, "fft axis 1"), all);
            // Only where both sides may overlap does the pass after the reshape go by tiles.
            let last = tiles(&events, EventKind::Transform, "fft axis 0");
            assert_eq!(last, if after { all.to_vec() } else { vec![None] });
            // Half of a rank's 8 x 4 x 12 complex numbers come from the other one.
            let posted = events.iter().filter(|event| event.kind == EventKind::Post);
            assert_eq!(posted.map(|event| event.bytes).collect::<Vec<_>>(), [1280, 1280, 512]);
            assert!(events.iter().all(|event| 0.0 <= event.test_ms && event.test_ms <= event.ms()));
            assert!(events.windows(2).all(|two| two[0].end_ms <= two[1].start_ms), "{events:?}");
            let wired = |event: &&Event| event.wired;
            assert_eq!(events.iter().filter(wired).count(), if after { 6 } else { 4 });
        }
    }
}

/// The events of a forward transform of 48^3 points by exchange `ring` on two ranks with a slow link.
fn encoded(choice: &Choice) -> Vec<Vec<Event>> {
    let problem = Problem::c2c([48, 48, 48]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let run = |comm: ferrier::Comm| {
        let mut plan = Planner::new(&problem).choice(choice.clone()).draft::<f64>(&comm)?.build()?;
        let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
        input.fill_complex(|_, [i, j, k]| ferrier::Complex::cis((i + 2 * j * j + 3 * k) as f64));
        plan.forward(&input, &mut output)?;
        plan.forward(&input, &mut output)?;
        Ok(plan.events())
    };
    let wire = Wire { gbit_per_s: 0.01, latency_us: 100.0 };
    ferrier::ranks(2).wire(wire).run(run).unwrap()
}

/// Of each packet of a tile one event of a kind, in order.
fn packets(events: &[Event], kind: EventKind, tile: usize) -> Vec<&Event> {
    let of_tile = |event: &&Event| event.kind == kind && event.tile == Some(tile) && event.packet.is_some();
    let found: Vec<_> = events.iter().filter(of_tile).collect();
    assert!(found.iter().enumerate().all(|(number, event)| event.packet == Some(number)), "{found:?}");
    found
}

/// While a packet is on its way the next one is encoded, and the other rank's are decoded, in tiles or not.
#[test]
fn packets_are_encoded_while_others_are_in_flight() {
    let _watchdog = watchdog(60);
    let choice = Choice::new().exchange("ring").codec("block:16").packet(17 << 10).packets(3);
    for tiles in [1, 2] {
        let tiling = Tiling::new(if tiles == 1 { 0 } else { 24 }).cut(2);
        let choice = choice.clone().overlap(Overlap::uniform(tiling));
        for events in encoded(&choice) {
            for tile in 0..tiles {
                let [encoded, sent, decoded] = [EventKind::Encode, EventKind::Transfer, EventKind::Decode]
                    .map(|kind| packets(&events, kind, tile));
                // Half of a rank's 24 x 48 x 48 complex elements, in 2 bytes and a bit each.
                assert_eq!((encoded.len(), decoded.len()), (sent.len(), sent.len()));
                assert_eq!(sent.len(), if tiles == 1 { 7 } else { 4 }, "{sent:?}");
                for (next, flight) in encoded[1..].iter().zip(&sent) {
                    assert!(
                        flight.start_ms <= next.start_ms && next.end_ms <= flight.end_ms,
                        "{next:?} {flight:?}"
                    );
                }
                let last = sent.last().map_or(0.0, |flight| flight.end_ms);
                let early = decoded.iter().filter(|event| event.end_ms < last).count();
                assert!(early + 4 >= decoded.len(), "{early} packets of {} are decoded early", decoded.len());
            }
            let steps: Vec<&Event> = events.iter().filter(|event| event.packet.is_none()).collect();
            assert!(steps.windows(2).all(|two| two[0].end_ms <= two[1].start_ms));
            assert!(steps.iter().all(|step| step.own_ms() >= 0.0), "{steps:?}");
            let coded: f64 = steps.iter().map(|step| step.coded_ms).sum();
            let all =
                events.iter().filter(|event| event.packet.is_some() && event.kind != EventKind::Transfer);
            assert!((coded - all.map(Event::ms).sum::<f64>()).abs() < 1e-6);
        }
    }
}
