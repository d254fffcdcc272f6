//! A first look.
use ferrier::*;
fn naive(x: &[Complex<f64>], n: [usize; 3]) -> Vec<Complex<f64>> {
    let mut out = x.to_vec();
    let st = [n[1] * n[2], n[2], 1];
    for a in 0..3 {
        let src = out.clone();
        for i in 0..src.len() {
            let k = i / st[a] % n[a];
            let base = i - k * st[a];
            out[i] = (0..n[a])
                .map(|j| {
                    src[base + j * st[a]]
                        * Complex::cis(-2.0 * std::f64::consts::PI * ((j * k) % n[a]) as f64 / n[a] as f64)
                })
                .sum();
        }
    }
    out
}
#[test]
fn all() {
    for n in [[5, 6, 7], [9, 9, 9], [16, 1, 15], [31, 31, 1], [1, 1, 13], [19, 20, 21]] {
        let x: Vec<_> = (0..n[0] * n[1] * n[2])
            .map(|i| Complex::new((i as f64 * 0.37).sin(), (i as f64 * 1.7).cos()))
            .collect();
        let want = naive(&x, n);
        let at = |[i, j, k]: [usize; 3]| (i * n[1] + j) * n[2] + k;
        for ex in exchange::EXCHANGES {
            for r in [1, 2, 3, 4, 7, 12] {
                for (li, lo) in [
                    (LayoutSpec::slabs(0), LayoutSpec::slabs(0)),
                    (LayoutSpec::bricks(), LayoutSpec::bricks().order(Order::F)),
                    (LayoutSpec::pencils(2), LayoutSpec::best()),
                    (LayoutSpec::slabs(2), LayoutSpec::pencils(1)),
                ] {
                    for real in [false, true] {
                        let problem = if real { Problem::r2c(n) } else { Problem::c2c(n) };
                        let problem = problem.input(li.clone()).output(lo.clone()).batch(2);
                        ranks(r)
                            .run(|comm| {
                                let choice = Choice { exchange: Some(ex.name.into()), ..Default::default() };
                                let mut plan =
                                    Planner::new(&problem).choice(choice).draft::<f64>(&comm)?.build()?;
                                let (mut a, mut b) = (plan.make_input()?, plan.make_output()?);
                                if real {
                                    a.fill_real(|_, ix| x[at(ix)].re);
                                } else {
                                    a.fill_complex(|_, ix| x[at(ix)]);
                                }
                                b.complex_mut().fill(Complex::new(f64::NAN, 0.0));
                                plan.forward(&a, &mut b)?;
                                if !real {
                                    let bx = plan.output_box();
                                    for i in bx.lo[0]..bx.hi[0] {
                                        for j in bx.lo[1]..bx.hi[1] {
                                            for k in bx.lo[2]..bx.hi[2] {
                                                for q in 0..2 {
                                                    let got = b.complex()[b.index(q, [i, j, k]).unwrap()];
                                                    assert!(
                                                        (got - want[at([i, j, k])]).norm() < 1e-10,
                                                        "{n:?} {} {r} {:?} {got} {}",
                                                        ex.name,
                                                        [i, j, k],
                                                        want[at([i, j, k])]
                                                    );
                                                }
                                            }
                                        }
                                    }
                                }
                                let mut c = plan.make_input()?;
                                plan.backward(&b, &mut c)?;
                                let (p, q) = (Data::<f64>::numbers(&a), Data::<f64>::numbers(&c));
                                let worst = p.iter().zip(q).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                                assert!(worst < 1e-12, "{n:?} {} {r} real {real} round {worst}", ex.name);
                                // in place
                                let mut d = plan.make_in_place()?;
                                if real {
                                    d.fill_real(|_, ix| x[at(ix)].re);
                                } else {
                                    d.fill_complex(|_, ix| x[at(ix)]);
                                }
                                let before = d.numbers().to_vec();
                                plan.forward_in_place(&mut d)?;
                                let same = b
                                    .numbers()
                                    .iter()
                                    .zip(d.numbers())
                                    .all(|(x, y)| x.to_bits() == y.to_bits());
                                assert!(same, "in place {n:?} {} {r} {real} {}", ex.name, plan.recipe());
                                plan.backward_in_place(&mut d)?;
                                if real {
                                    let bx = plan.input_box();
                                    for i in bx.lo[0]..bx.hi[0] {
                                        for j in bx.lo[1]..bx.hi[1] {
                                            for k in bx.lo[2]..bx.hi[2] {
                                                let at = d.real_index(1, [i, j, k]).unwrap();
                                                assert!((d.real()[at] - before[at]).abs() < 1e-12);
                                            }
                                        }
                                    }
                                }
                                Ok(())
                            })
                            .unwrap_or_else(|e| panic!("{e}"));
                    }
                }
            }
        }
    }
}
