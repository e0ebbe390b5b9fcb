//! Searches in traces and logs: diff, bisect, shrink, sweep, what-if.

mod bisect;
mod bisect_reruns;
mod diff;
mod diff_judged;
mod diff_malformed;
mod diff_many;
mod diff_properties;
mod diff_streamed;
mod diff_text;
mod shrink;
mod sweep;
mod what_if;
