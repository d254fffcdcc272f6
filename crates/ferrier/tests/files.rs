//! Files of arrays: what is written is read back, from any layout into any other; damage is an error.

use std::fs;
use std::path::Path;

use ferrier::io::{self, Compression, Dtype, Format, Raw, Reader, WriteOptions, Writer};
use ferrier::{Complex, Kind, LayoutSpec, Order, Plan, Precision, Problem, Real, ranks};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

fn value<T: Real>(batch: usize, [i, j, k]: [usize; 3]) -> Complex<T> {
    let number = (((batch * 31 + i) * 37 + j) * 41 + k) as f64;
    Complex::new(T::rounded(number), T::rounded(-number - 0.5))
}

/// A problem whose input and output have the same shape and are both real or both complex. It is never run.
fn identity(shape: [usize; 3], complex: bool, batch: usize) -> Problem {
    let problem = Problem::mixed(shape, [Kind::Dct2; 3]).batch(batch);
    if complex { problem.complex_values() } else { problem }
}

fn layout(number: usize) -> LayoutSpec {
    let orders = [Order::C, Order::F, Order::new([1, 0, 2]).unwrap()];
    let spec = match number % 7 {
        0 => LayoutSpec::bricks(),
        axis @ 1..=3 => LayoutSpec::slabs(axis - 1),
        axis => LayoutSpec::pencils(axis - 4),
    };
    spec.order(orders[number / 7 % 3])
}

/// Writes from the input layout of a problem and reads into its output layout.
fn round_trip<T: Real>(
    path: &Path,
    problem: &Problem,
    count: usize,
    options: &WriteOptions,
) -> ferrier::Result<()> {
    ranks(count).run(|comm| {
        let plan = Plan::<T>::new(&comm, problem)?;
        let (mut from, mut to) = (plan.make_input()?, plan.make_output()?);
        let mut shape = plan.input_layout().shape().to_vec();
        if from.batch() > 1 {
            shape.insert(0, from.batch());
        }
        match from.is_complex() {
            true => from.fill_complex(value),
            false => from.fill_real(|batch, index| value(batch, index).re),
        }
        let dtype = Dtype::new(from.is_complex(), T::PRECISION);
        let writer = Writer::create(&comm, path, dtype, &shape, options)?;
        writer.write(&comm, plan.input_layout(), &from, &|_| {})?;
        writer.commit(&comm)?;
        match Format::of_name(path) != Format::Raw {
            true => io::read(&comm, path, plan.output_layout(), &mut to)?,
            false => {
                let raw = Raw::new(&shape, dtype.big_endian(options.big_endian));
                Reader::open_raw(path, &raw)?.read(&mut to, 2, &|_| {})?;
            }
        }
        let mut expected = plan.make_output()?;
        match to.is_complex() {
            true => expected.fill_complex(value),
            false => expected.fill_real(|batch, index| value(batch, index).re),
        }
        match to.is_complex() {
            true => assert_eq!(to.complex(), expected.complex()),
            false => assert_eq!(to.real(), expected.real()),
        }
        Ok(())
    })?;
    Ok(())
}

fn cases() -> u32 {
    std::env::var("FERRIER_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_layout_to_a_file_and_into_any_other(
        shape in [1usize..14, 1usize..14, 1usize..14],
        chunk in [1usize..7, 1usize..7, 1usize..7],
        shards in prop::option::of([1usize..4, 1usize..4, 1usize..4]),
        layouts in (0usize..21, 0usize..21),
        count in 1usize..6,
        (complex, single, batched) in any::<(bool, bool, bool)>(),
        (kind, codec) in (0usize..4, 0usize..4),
    ) {
        let batch = if batched { 3 } else { 1 };
        let problem = identity(shape, complex, batch).input(layout(layouts.0)).output(layout(layouts.1));
        let mut options = WriteOptions::default();
        let name = match kind {
            0 => "a.npy",
            1 => {
                options.big_endian = single;
                "a.raw"
            }
            _ => {
                options.chunks = chunk.to_vec();
                options.shards = shards.map_or(Vec::new(), |of| (0..3).map(|axis| chunk[axis] * of[axis]).collect());
                for list in [&mut options.chunks, &mut options.shards] {
                    if batched && !list.is_empty() {
                        list.insert(0, 1);
                    }
                }
                options.compress = [
                    Compression::None,
                    Compression::Zstd(3),
                    Compression::Gzip(2),
                    Compression::Blosc(3),
                ][codec];
                "a.zarr"
            }
        };
        if cfg!(feature = "zarr") || kind < 2 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let done = match single {
                true => round_trip::<f32>(&path, &problem, count, &options),
                false => round_trip::<f64>(&path, &problem, count, &options),
            };
            done.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            prop_assert_eq!(names, [name], "nothing unfinished is left");
        }
    }
}

#[test]
fn shapes_and_types_that_do_not_fit_are_errors_on_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let refused = |problem: &Problem, part: &str| {
        let (path, text) = (&path, part.to_string());
        ranks(2)
            .run(move |comm| {
                let plan = Plan::<f64>::new(&comm, problem)?;
                let mut array = plan.make_input()?;
                let error = io::read(&comm, path, plan.input_layout(), &mut array).unwrap_err();
                assert!(error.to_string().contains(&text), "{error}");
                assert!(matches!(error, ferrier::Error::File { .. }), "{error:?}");
                Ok(())
            })
            .unwrap();
    };
    refused(&identity([4, 3, 2], false, 1), "No such file");
    round_trip::<f64>(&path, &identity([4, 3, 2], true, 1), 2, &WriteOptions::default()).unwrap();
    refused(&identity([4, 3, 2], false, 1), "its elements are complex128, the array is real");
    refused(&identity([4, 3, 3], true, 1), "its shape is [4, 3, 2], the array's is [4, 3, 3]");
    refused(&identity([4, 3, 2], true, 5), "a batch of 5 arrays");
    round_trip::<f32>(&path, &identity([4, 3, 2], true, 1), 2, &WriteOptions::default()).unwrap();
    refused(&identity([4, 3, 2], true, 1), "its elements are complex64, the array is f64");
    ranks(2)
        .run(|comm| {
            let plan = Plan::<f64>::new(&comm, &identity([4, 3, 2], false, 1))?;
            let writer = Writer::create(
                &comm,
                &path,
                Dtype::new(true, Precision::F64),
                &[4, 3, 2],
                &WriteOptions::default(),
            )?;
            let error = writer.write(&comm, plan.input_layout(), &plan.make_input()?, &|_| {}).unwrap_err();
            assert!(error.to_string().contains("the array is real"), "{error}");
            Ok(())
        })
        .unwrap();
    assert_eq!(Reader::open(&path).unwrap().dtype().name(), "complex64", "the old file is still there");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[cfg(feature = "zarr")]
mod zarr {
    use super::*;

    /// A store of 6 x 5 x 4 elements in chunks of 4 x 4 x 4.
    fn store(path: &Path, compress: Compression, shards: &[usize]) {
        let mut options = WriteOptions::default();
        (options.chunks, options.shards, options.compress) = (vec![4], shards.to_vec(), compress);
        round_trip::<f64>(path, &identity([6, 5, 4], false, 1), 2, &options).unwrap();
    }

    /// The elements as one rank reads them.
    fn read(name: &Path, shape: [usize; 3]) -> ferrier::Result<Vec<f64>> {
        let done = ranks(1).run(|comm| {
            let plan = Plan::<f64>::new(&comm, &identity(shape, false, 1))?;
            let mut array = plan.make_input()?;
            io::read(&comm, name, plan.input_layout(), &mut array)?;
            Ok(array.real()[..shape.iter().product()].to_vec())
        })?;
        Ok(done.into_iter().next().unwrap())
    }

    fn refused(name: &Path, part: &str) {
        let error = read(name, [6, 5, 4]).unwrap_err().to_string();
        assert!(error.contains(part), "`{part}` is not in: {error}");
        assert!(error.contains(name.to_str().unwrap()), "{error}");
    }

    #[test]
    fn parts_of_arrays_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let name = |end: &str| folder.path().join(format!("a.zarr{end}"));
        let mut options = WriteOptions::default();
        (options.chunks, options.shards) = (vec![1, 2, 2, 2], vec![1, 4, 4, 4]);
        round_trip::<f64>(&name("::run/density"), &identity([6, 5, 4], false, 3), 2, &options).unwrap();
        let all = read(&name("::run/density[1]"), [6, 5, 4]).unwrap();
        assert_eq!(all[21], value::<f64>(1, [1, 0, 1]).re);
        let part = read(&name("::run/density[2, 1:3, :, 3]"), [1, 2, 5]).unwrap();
        let expected: Vec<f64> = (0..10).map(|n| value::<f64>(2, [1 + n / 5, n % 5, 3]).re).collect();
        assert_eq!(part, expected);
        let error = |end: &str, part: &str| {
            let error = Reader::open(name(end)).unwrap_err().to_string();
            assert!(error.contains(part), "{end}: {error}");
        };
        error("", "it is a Zarr group");
        error("::run", "name an array in it, such as");
        error("::run/pressure", "there is no array `run/pressure`");
        error("::run/density[3]", "axis 0 has 3 indices, 3 is not one of them");
        error("::run/density[0,0,0,0,0]", "5 indices, the array has 4 axes");
        error("::../a.zarr", "is not in the store");
        // A second array of the group; the first stays.
        round_trip::<f64>(&name("::run/pressure"), &identity([6, 5, 4], false, 1), 1, &options_of(2))
            .unwrap();
        assert_eq!(read(&name("::run/density[1]"), [6, 5, 4]).unwrap(), all);
        assert_eq!(read(&name("::run/pressure"), [6, 5, 4]).unwrap().len(), 120);
        // Groups and parts are not overwritten.
        for (end, part) in [
            ("", "is a Zarr group; name an array in it"),
            ("::run/density[0]", "written as a whole"),
            ("::run/density/x", "is an array, not a group"),
            ("::../x", "is not a name"),
        ] {
            let problem = identity([6, 5, 4], false, 1);
            let error =
                round_trip::<f64>(&name(end), &problem, 2, &WriteOptions::default()).unwrap_err().to_string();
            assert!(error.contains(part), "{end}: {error}");
        }
        assert_eq!(read(&name("::run/density[1]"), [6, 5, 4]).unwrap(), all);
    }

    fn options_of(chunk: usize) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.chunks = vec![chunk];
        options
    }

    #[test]
    fn missing_chunks_are_the_fill_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zarr");
        store(&path, Compression::Zstd(1), &[]);
        fs::remove_file(path.join("c/1/0/0")).unwrap();
        let text = fs::read_to_string(path.join("zarr.json")).unwrap();
        let filled = text.replace("\"fill_value\": 0.0", "\"fill_value\": 2.5");
        assert_ne!(text, filled);
        fs::write(path.join("zarr.json"), filled).unwrap();
        let all = read(&path, [6, 5, 4]).unwrap();
        assert_eq!(all[3 * 20], value::<f64>(0, [3, 0, 0]).re);
        assert_eq!((all[4 * 20], all[5 * 20 + 15]), (2.5, 2.5));
        assert_eq!(all[4 * 20 + 16], value::<f64>(0, [4, 4, 0]).re);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zarr");
        refused(&path, "No such file");
        fs::create_dir(&path).unwrap();
        refused(&path, "a folder without a zarr.json");
        for (text, part) in [
            ("", "damaged"),
            ("{", "damaged"),
            ("[]", "neither that of an array"),
            ("{\"zarr_format\": 2}", "Zarr 2"),
            ("{\"zarr_format\": 3, \"node_type\": \"array\"}", "of type 'null'"),
        ] {
            fs::write(path.join("zarr.json"), text).unwrap();
            refused(&path, part);
        }
        fs::remove_dir_all(&path).unwrap();
        store(&path, Compression::None, &[]);
        let text = fs::read_to_string(path.join("zarr.json")).unwrap();
        for (old, new, part) in [
            ("float64", "int32", "of type 'int32'; supported are float32"),
            ("\"regular\"", "\"spiral\"", "spiral"),
            ("\"bytes\"", "\"rot13\"", "rot13"),
            ("0.0", "\"x\"", "fill value"),
        ] {
            assert!(text.contains(old), "{text}");
            fs::write(path.join("zarr.json"), text.replace(old, new)).unwrap();
            refused(&path, part);
        }
        fs::write(path.join("zarr.json"), &text).unwrap();
        for compress in [Compression::None, Compression::Zstd(1), Compression::Gzip(1), Compression::Blosc(1)]
        {
            for shards in [&[][..], &[8]] {
                store(&path, compress, shards);
                let chunk = path.join("c/0/0/0");
                let good = fs::read(&chunk).unwrap();
                fs::write(&chunk, &good[..good.len() / 2]).unwrap();
                refused(&path, "");
                fs::write(&chunk, b"").unwrap();
                refused(&path, "");
                // Any byte may be damaged: an error or other numbers, but never a panic or an endless allocation.
                for at in (0..good.len()).step_by(good.len() / 40 + 1).chain(good.len() - 24..good.len()) {
                    let mut bad = good.clone();
                    bad[at] ^= 0x55;
                    fs::write(&chunk, &bad).unwrap();
                    let _ = read(&path, [6, 5, 4]);
                }
            }
        }
    }

    #[test]
    fn a_store_is_replaced_at_once_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zarr");
        store(&path, Compression::None, &[]);
        let old = read(&path, [6, 5, 4]).unwrap();
        ranks(2)
            .run(|comm| {
                let writer = Writer::create(
                    &comm,
                    &path,
                    Dtype::new(false, Precision::F32),
                    &[3],
                    &WriteOptions::default(),
                )?;
                assert!(writer.is_zarr());
                // Not committed.
                Ok(())
            })
            .unwrap();
        assert_eq!(read(&path, [6, 5, 4]).unwrap(), old);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        round_trip::<f32>(&path, &identity([2, 2, 2], true, 1), 3, &WriteOptions::default()).unwrap();
        assert_eq!(Reader::open(&path).unwrap().dtype().name(), "complex64");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // What is not a store is not replaced.
        let other = folder.path().join("b.zarr");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("precious"), "data").unwrap();
        let error = round_trip::<f32>(&other, &identity([2, 2, 2], true, 1), 1, &WriteOptions::default())
            .unwrap_err();
        assert!(error.to_string().contains("is a folder, and not a Zarr array"), "{error}");
        assert_eq!(fs::read(other.join("precious")).unwrap(), b"data");
    }
}
