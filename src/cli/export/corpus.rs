//! `hitreg export` of several logs or traces: the files of each in a folder.

use super::{Args, ExportSource, FileExport, events, like};
use crate::cli::CommandResult;
use crate::cli::each_log::EachLog;
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::engine::Games;
use crate::store::{self, FileType};

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    if !args.perfetto && args.table.is_none() && !args.all {
        return Err(CommandError::request(
            "the list of tables is that of one log: name one log, or add --table NAME or --all",
        ));
    }
    let Some(folder) = &args.output else {
        return Err(CommandError::request("several logs need a folder for their outputs: add -o FOLDER"));
    };
    match args.perfetto {
        true => output.check_no_result("a timeline: leave it out")?,
        false => args.check_rows(output)?,
    }
    let corpus = args.corpus.corpus(&args.files)?;
    let outputs = &mut output.files;
    let timelines = match args.perfetto {
        true => outputs.target_of_each(folder, (&corpus.logs, "json"), &FileType::Events)?,
        false => Vec::new(),
    };
    let folders = if args.perfetto { Vec::new() } else { outputs.names_in(folder, &corpus.logs)? };
    let outputs = &*outputs;
    let exported = EachLog::run("exporting", &corpus, args.workers.threads(), &|number, file| {
        let export = FileExport { args, file, alone: false };
        export.check_what_if()?;
        if let Some(target) = timelines.get(number) {
            return events::write(games, export, target);
        }
        let source = ExportSource::of_tables(games, export)?;
        let Some(name) = &args.table else { return source.save_all(export, &folders[number], outputs) };
        store::create_folder(&folders[number])?;
        let format = args.format();
        let path = folders[number].join(format!("{name}.{}", format.ending()));
        source.save(name, export, &outputs.target_at(&path, like(name, format))?)
    })?;
    Ok(exported.report())
}
