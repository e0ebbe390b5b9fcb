using System;
using System.Runtime.InteropServices;

namespace Hitreg {
    /// <summary>What a server does next in a recorded session.</summary>
    public enum StepKind : uint {
        /// <summary>
        /// Restore a body that exists before the first tick: row <see cref="Step.Row"/> of <see cref="Log.ReadState"/>.
        /// Only in a log that begins within a session, after the players who are present have joined.
        /// </summary>
        Restore = 0,
        /// <summary>
        /// <see cref="Step.Player"/> joins. A body that the game spawns here is restored if the player was present before
        /// the first tick.
        /// </summary>
        Join = 1,
        /// <summary><see cref="Step.Player"/> leaves.</summary>
        Leave = 2,
        /// <summary>
        /// Run a usercmd of <see cref="Step.Player"/>: row <see cref="Step.Row"/> of <see cref="Log.ReadUsercmd"/>.
        /// </summary>
        Input = 3,
        /// <summary>End the tick: simulate, then push the tick and its bodies.</summary>
        Tick = 4,
        /// <summary>
        /// A row of a table of your own: <see cref="Step.Row"/> of series <see cref="Step.Player"/> of
        /// <see cref="Step.Table"/>, for <see cref="Log.Row"/>. Rows come first in a tick, by their times.
        /// </summary>
        Row = 5,
    }

    /// <summary>A step of a playback.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Step {
        /// <summary>What to do.</summary>
        public StepKind Kind;
        /// <summary>The tick in which the step happens.</summary>
        public uint Tick;
        /// <summary>Time of the tick.</summary>
        public long AtUs;
        uint player;
        UIntPtr row;
        /// <summary>
        /// For usercmds: <see cref="How.Run"/>, or <see cref="How.StoodIn"/> for one that runs again in place of a lost
        /// one.
        /// </summary>
        public How How;
        /// <summary>For rows: the table.</summary>
        public Table Table;

        /// <summary>The player, or the series of a row; 0 for steps without one.</summary>
        public int Player {
            get { return (int)player; }
        }

        /// <summary>The row to read; 0 for steps without one.</summary>
        public int Row {
            get { return (int)row; }
        }
    }

    /// <summary>
    /// A log that a build replays into a trace. One thread uses it.
    ///
    /// Joins and leaves come first in a tick, then usercmds by player, then the end of the tick. Usercmds run in the
    /// ticks in which they were recorded as executed. If the log records no execution, they run in the first tick that
    /// is not earlier than they are.
    /// </summary>
    public sealed unsafe class Playback : Handle {
        Playback(IntPtr playback) {
            SetHandle(playback);
            Log = new Log(this, Native.hitreg_playback_log(this));
        }

        /// <summary>
        /// Opens the log that the arguments of <c>Main</c> name: <c>replay LOG -o TRACE</c>, and any number of
        /// <c>--set KEY=VALUE</c>. The exception has the exit code for <c>Main</c>.
        /// </summary>
        public static Playback Open(string[] args, string game) {
            using (var texts = new UnmanagedTexts()) {
                // The library skips the name of the program, which `args` lacks.
                var argv = new IntPtr[args.Length + 1];
                argv[0] = texts.Add("");
                for (int arg = 0; arg < args.Length; arg++) {
                    argv[arg + 1] = texts.Add(args[arg]);
                }
                IntPtr playback;
                int exitCode;
                Code code = Native.hitreg_playback_open(
                    argv.Length, argv, Utf8.Bytes(game), out playback, out exitCode);
                if (code != Code.Ok) {
                    throw HitregException.Latest(code, exitCode);
                }
                return new Playback(playback);
            }
        }

        /// <summary>The log, which is disposed with the playback.</summary>
        public Log Log { get; private set; }

        /// <summary>
        /// A setting of this replay: as asked for with <c>--set</c>, or as recorded. Null if the session has no setting
        /// of this name.
        /// </summary>
        public string Setting(string key) {
            string value = Utf8.Read(Native.hitreg_playback_setting(this, Utf8.Bytes(key)));
            GC.KeepAlive(this);
            return value;
        }

        /// <summary>
        /// Starts the trace, with the description that the game also records with, and returns the stream for its
        /// rows. Dispose the stream before <see cref="Finish"/>.
        /// </summary>
        public RowStream Begin(Description description) {
            IntPtr stream;
            HitregException.Check(Native.hitreg_playback_begin(this, description, out stream));
            return new RowStream(stream);
        }

        /// <summary>
        /// Reads the next step, and pushes the recorded usercmds and executions before it. Returns false after the last
        /// tick.
        /// </summary>
        public bool Next(RowStream stream, out Step step) {
            return HitregException.Found(Native.hitreg_playback_next(this, stream, out step));
        }

        /// <summary>
        /// Writes the trace of the steps so far. The playback can then only be disposed. It throws if
        /// <see cref="Begin"/> has not started a trace.
        /// </summary>
        public void Finish() {
            HitregException.Check(Native.hitreg_playback_finish(this));
        }

        /// <summary>Disposes the log with the playback.</summary>
        protected override void Dispose(bool disposing) {
            if (disposing) {
                Log.Dispose();
            }
            base.Dispose(disposing);
        }

        /// <summary>Frees the playback.</summary>
        protected override bool ReleaseHandle() {
            Native.hitreg_playback_free(handle);
            return true;
        }
    }
}
