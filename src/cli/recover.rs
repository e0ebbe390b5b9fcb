//! `hitreg recover`: saves the intact parts of a damaged or unfinished log as a complete log.

use std::path::PathBuf;

use serde::Serialize;

use super::figures::{bytes, count, counted, duration};
use super::output::FileSize;
use super::page::{Bad, Good, Page, Unsure};
use super::trouble::note_passed_over;
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::info::InfoBuilder;
use crate::log::{DamagedPart, LogError, LogReader, RecoveredLog, Truncation, WriterOptions};
use crate::record::{Outline, SessionChunk};
use crate::store::shown::shell_path;
use crate::store::{self, FileType, UnfinishedRecording};
use crate::units::Micros;

/// Save the intact chunks of a damaged or unfinished log
///
/// Use it after a killed recording, an incomplete copy or a disk error. Chunks are independent, so every intact chunk
/// can be read. The result is a valid log, and lost parts are listed. If a part is missing from the middle, a replay
/// after it does not match the recording.
///
/// NAME.part, from a killed recording, becomes NAME. If only its unfinished end is lost, NAME.part is deleted.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg recover match.hitlog.part       writes match.hitlog
  hitreg recover damaged.hitlog -o saved.hitlog && hitreg info saved.hitlog")]
pub(super) struct Args {
    /// The damaged log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The log to write [default: for LOG.part, LOG]
    #[arg(short, long, value_name = "LOG")]
    output: Option<OutputPath>,
}

#[derive(Serialize)]
struct RecoverReport {
    path: String,
    output: String,
    /// Whether the unfinished recording was removed in favor of the log.
    unfinished_removed: bool,
    undamaged: bool,
    chunks: u32,
    /// The number of keyframes in the damaged log. The saved log has none.
    keyframes_left_out: u32,
    cut_off: Option<Truncation>,
    lost: Vec<DamagedPart>,
    duration_us: i64,
    ticks: usize,
    usercmds: usize,
    size_bytes: FileSize,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let (path, unfinished) = destination(args)?;
    let target = output.files.target(&path, FileType::Log)?;
    let (_, bytes) = store::read_either(&args.log)?;
    let recovered = RecoveredLog::find(&bytes).map_err(|error| CommandError::file(&args.log, error))?;
    let (header, damage) = (recovered.header(), recovered.damage());
    note_passed_over(&args.log, header);
    let (mut figures, limit) = (InfoBuilder::new(header), store::memory_limit()?);
    store::save(&target, |out| {
        let seen = &mut |chunk: &SessionChunk| figures.add(Outline::of(chunk));
        recovered.write(out, WriterOptions::whole(), limit, seen).map(drop)
    })?;
    // An unfinished recording with damage is kept, because it may contain more than was read.
    let is_removed = match unfinished {
        Some(unfinished) if damage.parts.is_empty() => unfinished.remove().map(|()| true)?,
        Some(_) | None => false,
    };
    let info = figures.info(header);
    let report = RecoverReport {
        path: args.log.display().to_string(),
        output: path.display().to_string(),
        unfinished_removed: is_removed,
        undamaged: damage.is_none(),
        chunks: damage.chunks,
        keyframes_left_out: damage.keyframes,
        cut_off: damage.torn,
        lost: damage.parts.clone(),
        duration_us: info.duration_us,
        ticks: info.ticks,
        usercmds: info.usercmds,
        size_bytes: FileSize::of(&path),
    };
    output.show(&report, |page| print(page, &report))
}

/// The path of the new log, and the unfinished recording that it replaces if it takes its name.
fn destination(args: &Args) -> Result<(OutputPath, Option<UnfinishedRecording>), CommandError> {
    let name = UnfinishedRecording::name(&args.log);
    let path = match (&args.output, &name) {
        (Some(path), _) => path.clone(),
        (None, Some(name)) => OutputPath::from(name.clone().into_os_string()),
        (None, None) => {
            // The name of another log cannot help a file that is no log.
            if let Err(error @ (LogError::NotHitreg { .. } | LogError::WrongKind { .. })) =
                LogReader::new(store::open(&args.log)?)
            {
                return Err(CommandError::file(&args.log, error));
            }
            let what = format!("name the new log: hitreg recover {} -o recovered.hitlog", shell_path(&args.log));
            return Err(CommandError::file(&args.log, what));
        }
    };
    let is_its_own = name.is_some_and(|name| std::path::absolute(&*path).ok() == std::path::absolute(name).ok());
    let unfinished = if is_its_own { Some(UnfinishedRecording::take(&args.log)?) } else { None };
    Ok((path, unfinished))
}

fn print(page: &mut Page, report: &RecoverReport) {
    page.heading(&report.path);
    if report.undamaged {
        page.styled(Good, "  undamaged: all chunks are intact");
    }
    if let Some(Truncation { at_offset: offset, lost_bytes: lost }) = &report.cut_off {
        let text = format!("  truncated at offset {offset}: {} of an unfinished chunk are lost", bytes(*lost));
        page.styled(Unsure, &text);
    }
    for DamagedPart { offset, bytes: lost, chunks, what } in &report.lost {
        let text = format!(
            "damaged at offset {offset}: {}, {} lost: {what}",
            bytes(*lost),
            counted((*chunks).into(), "chunk")
        );
        page.marked(2, Bad, &text);
    }
    let length = duration(Micros(report.duration_us));
    let chunks = counted(report.chunks.into(), "chunk");
    let (ticks, usercmds) = (count(report.ticks as u64), count(report.usercmds as u64));
    page.pair("saved", &format!("{chunks}: {length}, {ticks} ticks, {usercmds} usercmds"));
    page.pair("written to", &format!("{} ({})", report.output, report.size_bytes));
    if report.keyframes_left_out > 0 {
        let what = counted(report.keyframes_left_out.into(), "keyframe");
        page.pair("left out", &format!("{what}; add them again with `hitreg keyframes`"));
    }
    if report.unfinished_removed {
        page.pair("deleted", &report.path);
    }
    if report.lost.iter().any(|lost| lost.chunks > 0) {
        page.paragraph(2, "A part is missing from the middle: a replay after it does not match the recording.");
    }
}
