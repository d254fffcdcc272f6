//! One output file of all processes.

use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::failure::{Outcome, io_failure};
use crate::files::output::{Naming, Output};
use crate::session::Session;

/// Opens the output on every process. The first process creates it with the bytes of `head`
/// and `bytes` more, the others open that file. Collective over processes.
///
/// # Errors
/// It cannot be written.
pub fn open_output(path: &Path, head: &[u8], bytes: u64, session: &Session) -> Outcome<Output> {
    let one_host = session.launched().is_none_or(|launched| launched.comm().node_count() == 1);
    if one_host {
        match open_as(path, head, bytes, session, Naming::Late)? {
            // Open files of other processes are not accessible: use a hidden name.
            Err(_) => {}
            Ok(output) => return Ok(output),
        }
    }
    open_as(path, head, bytes, session, Naming::Early)?
}

/// The outer failure is that of creating the file, the inner that of opening it.
fn open_as(
    path: &Path,
    head: &[u8],
    bytes: u64,
    session: &Session,
    naming: Naming,
) -> Outcome<Outcome<Output>> {
    let made = session.of_first(|| {
        let output = Output::create(path, naming)?;
        output.reserve(head.len() as u64 + bytes)?;
        output.file().write_all_at(head, 0).map_err(|error| io_failure("write", path, &error))?;
        let invitation = output.invitation()?;
        Ok(Some((output, invitation)))
    })?;
    let invitation = session.broadcast(made.as_ref().map_or(&[], |(_, own)| own))?;
    Ok(session.agree(made.map_or_else(|| Output::join(&invitation, path), |(output, _)| Ok(output))))
}
