//! Schedules: the passes over memory of one direction. Pure, and the same on every rank.

mod fusion;
mod passes;
mod stages;
mod transform;

pub use fusion::{better_aside, bundle_bytes, bundle_of, may_fuse};
pub use passes::{ArraySlot, End, Pass, Reshape, Schedule, ScheduleOptions, schedule};
pub use stages::{Stage, stages, tilings};
pub use transform::{AxisTransform, Direction, FusedOp, OpPosition, PointwiseOp};
