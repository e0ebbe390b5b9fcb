//! A corpus: any number of logs, judged one by one on all cores. Each log gives rows of results
//! ([`hitreg_analysis::corpus`]), which a results folder keeps, so that a later run judges only what changed.

mod compared;
mod inputs;
mod results;
mod run;
mod share;
mod verified;

pub use compared::ComparedCorpus;
pub use inputs::{Corpus, CorpusError, is_corpus};
pub use results::{ResultFolder, ResultSet, ResultsError, is_parquet};
pub use run::{CorpusJudge, CorpusRun, JudgedCorpus, JudgedLog, for_each_log};
pub use share::CorpusShare;
pub use verified::VerifiedCorpus;
