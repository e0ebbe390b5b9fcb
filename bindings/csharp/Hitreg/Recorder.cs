using System;
using System.Runtime.InteropServices;

namespace Hitreg {
    /// <summary>Options of a recorder. Zero selects the default of each field.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct RecorderOptions {
        internal uint Size;
        /// <summary>How much older than the newest row a row may be, in milliseconds; 250 by default.</summary>
        public uint WindowMs;
        /// <summary>Capacity of each stream, in rows, at most 1,048,576; 4096 by default.</summary>
        public uint Ring;
        uint patient;
        /// <summary>Seconds of session time after which a new file starts; 0 for no limit. A flight recorder ignores it.</summary>
        public uint RotateS;
        /// <summary>MiB after which a new file starts; 0 for no limit. A flight recorder ignores it.</summary>
        public uint RotateMib;

        /// <summary>Wait instead of dropping rows or chunks, for sessions that do not run in real time.</summary>
        public bool Patient {
            get { return patient != 0; }
            set { patient = value ? 1u : 0; }
        }
    }

    /// <summary>Counters of a recorder.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Written {
        internal uint Size;
        uint reserved;
        /// <summary>Rows in the file so far. A flight recorder and a trace count the rows that they received.</summary>
        public ulong Rows;
        /// <summary>Rows lost because a stream was full.</summary>
        public ulong LostRows;
        /// <summary>Chunks dropped because the disk was too slow.</summary>
        public ulong DroppedChunks;
        /// <summary>Rows refused because they were older than the reorder window. Gaps in the log mark when.</summary>
        public ulong LateRows;
    }

    /// <summary>A log that is being written. Any thread may use it, one at a time.</summary>
    public sealed class Recorder : Handle {
        Recorder(IntPtr recorder) {
            SetHandle(recorder);
        }

        /// <summary>Starts a log at a path, which is called <c>PATH.part</c> until <see cref="Finish"/>.</summary>
        public static Recorder Create(string path, Description description,
            RecorderOptions options = default(RecorderOptions)) {
            IntPtr recorder;
            options.Size = (uint)Marshal.SizeOf(typeof(RecorderOptions));
            HitregException.Check(
                Native.hitreg_recorder_create(Utf8.Bytes(path), description, ref options, out recorder));
            return new Recorder(recorder);
        }

        /// <summary>
        /// Starts a flight recorder: it keeps the last seconds, from 1 to 1,000,000, in memory for <see cref="Save"/>.
        /// </summary>
        public static Recorder KeepLast(int seconds, Description description,
            RecorderOptions options = default(RecorderOptions)) {
            if (seconds < 1 || seconds > 1000000) {
                throw new ArgumentOutOfRangeException(nameof(seconds), seconds,
                    "a flight recorder keeps from 1 s to 1000000 s");
            }
            IntPtr recorder;
            options.Size = (uint)Marshal.SizeOf(typeof(RecorderOptions));
            HitregException.Check(
                Native.hitreg_recorder_keep_last((uint)seconds, description, ref options, out recorder));
            return new Recorder(recorder);
        }

        /// <summary>
        /// Starts the trace of a log. A build that replays a log pushes the same rows as when it records a session.
        /// <see cref="Finish"/> writes the tables, and replaces an existing trace.
        /// </summary>
        public static Recorder Trace(string path, Description description, Log log) {
            IntPtr recorder;
            HitregException.Check(Native.hitreg_recorder_trace(Utf8.Bytes(path), description, log, out recorder));
            return new Recorder(recorder);
        }

        /// <summary>Creates a stream for one thread to push into. A recorder can have any number of streams.</summary>
        public RowStream NewStream() {
            IntPtr stream;
            HitregException.Check(Native.hitreg_stream_new(this, out stream));
            return new RowStream(stream);
        }

        /// <summary>
        /// Writes what a flight recorder holds as a log. The recording goes on. A signal handler must not call it: set a flag in
        /// the handler, and save from the main loop.
        /// </summary>
        public void Save(string path) {
            HitregException.Check(Native.hitreg_recorder_save(this, Utf8.Bytes(path)));
        }

        /// <summary>The counters so far; the last ones after <see cref="Finish"/>.</summary>
        public Written Written {
            get {
                var written = new Written { Size = (uint)Marshal.SizeOf(typeof(Written)) };
                HitregException.Check(Native.hitreg_recorder_written(this, ref written));
                return written;
            }
        }

        /// <summary>Ends the log: writes everything pushed before, and renames the file.</summary>
        public Written Finish() {
            var written = new Written { Size = (uint)Marshal.SizeOf(typeof(Written)) };
            HitregException.Check(Native.hitreg_recorder_finish(this, ref written));
            return written;
        }

        /// <summary>Frees the recorder. Without a finish, <c>PATH.part</c> keeps everything recorded so far.</summary>
        protected override bool ReleaseHandle() {
            Native.hitreg_recorder_free(handle);
            return true;
        }
    }
}
