//! Arrays and workspaces.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::handle::{Handle, Object};
use crate::pointer::Out;
use crate::status::{Outcome, Status, guard};

/// Memory for a plan's arrays: aligned, in huge pages where large, and shared with the other ranks of the node, so that
/// transforms need fewer copies than with other memory. On a GPU: memory of the GPU.
pub struct Array {
    start: usize,
    bytes: u64,
    _owner: Mutex<Box<dyn Any + Send>>,
}

impl Object for Array {
    const NAME: &'static str = "array";
    const TAG: usize = 5;
}

impl Array {
    pub(crate) fn new(start: *mut c_void, bytes: u64, owner: impl Send + 'static) -> Array {
        Array { start: start.expose_provenance(), bytes, _owner: Mutex::new(Box::new(owner)) }
    }
}

/// Memory that several plans can use in turn for their work.
pub struct Workspace(pub(crate) Mutex<Box<dyn Any + Send>>);

impl Object for Workspace {
    const NAME: &'static str = "workspace";
    const TAG: usize = 6;
}

impl Workspace {
    pub(crate) fn new(workspace: impl Send + 'static) -> Workspace {
        Workspace(Mutex::new(Box::new(workspace)))
    }
}

/// The address of the first element, in main memory or in that of the GPU; valid until the array is destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_data(array: Handle<Array>, data: Out<*mut c_void>) -> Status {
    guard(|| data.set("data", std::ptr::with_exposed_provenance_mut(array.get("array")?.start)))
}

/// The length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_bytes(array: Handle<Array>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", array.get("array")?.bytes))
}

/// Frees an array; plans must not use its memory any more. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_free(array: Handle<Array>) -> Status {
    guard(|| array.destroy("array"))
}

/// Frees a workspace. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_workspace_free(workspace: Handle<Workspace>) -> Status {
    guard(|| workspace.destroy("workspace"))
}

/// The workspace of a call.
pub(crate) fn workspace_of(workspace: Handle<Workspace>) -> Outcome<Option<std::sync::Arc<Workspace>>> {
    if workspace.is_null() { Ok(None) } else { workspace.get("workspace").map(Some) }
}
