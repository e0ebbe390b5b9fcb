using System;

namespace Hitreg {
    /// <summary>
    /// A trace, column by column. One thread at a time. <see cref="Playback"/> is simpler for a build that
    /// replays a log; this writes any table. Every method returns the trace.
    /// </summary>
    public sealed unsafe class TraceWriter : Handle {
        /// <summary>
        /// Creates the trace of a log. The mode is <c>closed</c> if the build ran the server; <c>open</c> if clients
        /// ran on recorded snapshots.
        /// </summary>
        public TraceWriter(Log log, string mode) {
            IntPtr trace;
            HitregException.Check(Native.hitreg_trace_new(log, Utf8.Bytes(mode), out trace));
            SetHandle(trace);
        }

        /// <summary>Sets a setting of the replay that differs from the log's, as given by <c>--set</c>.</summary>
        public TraceWriter Setting(string key, string value) {
            return After(Native.hitreg_trace_setting(this, Utf8.Bytes(key), Utf8.Bytes(value)));
        }

        /// <summary>Starts the next table: one that hitreg defines, such as <c>ticks</c>, or one of your own.</summary>
        public TraceWriter Table(string name) {
            return After(Native.hitreg_trace_table(this, Utf8.Bytes(name)));
        }

        /// <summary>Names a key column of the latest table, if it is your own. Key columns identify a row.</summary>
        public TraceWriter Key(string column) {
            return After(Native.hitreg_trace_key(this, Utf8.Bytes(column)));
        }

        /// <summary>Adds a column to the latest table: one value for each row.</summary>
        public TraceWriter Column(string name, string unit, uint[] values) {
            fixed (uint* first = values) {
                return Column(name, unit, FieldType.U32, first, values.Length);
            }
        }

        /// <summary>Adds a column of 64-bit hashes.</summary>
        public TraceWriter Column(string name, string unit, ulong[] values) {
            fixed (ulong* first = values) {
                return Column(name, unit, FieldType.U64, first, values.Length);
            }
        }

        /// <summary>Adds a column of signed numbers or times.</summary>
        public TraceWriter Column(string name, string unit, long[] values) {
            fixed (long* first = values) {
                return Column(name, unit, FieldType.I64, first, values.Length);
            }
        }

        /// <summary>Adds a column of floats.</summary>
        public TraceWriter Column(string name, string unit, float[] values) {
            fixed (float* first = values) {
                return Column(name, unit, FieldType.F32, first, values.Length);
            }
        }

        /// <summary>Adds a column of 64-bit floats.</summary>
        public TraceWriter Column(string name, string unit, double[] values) {
            fixed (double* first = values) {
                return Column(name, unit, FieldType.F64, first, values.Length);
            }
        }

        /// <summary>Adds a column of flags.</summary>
        public TraceWriter Column(string name, string unit, bool[] values) {
            fixed (bool* first = values) {
                return Column(name, unit, FieldType.Bool, first, values.Length);
            }
        }

        /// <summary>Adds a column of names. The codes have the index in the names of each row's name.</summary>
        public TraceWriter Names(string name, string[] names, uint[] codes) {
            using (var texts = new UnmanagedTexts()) {
                return After(Native.hitreg_trace_names(
                    this, Utf8.Bytes(name), Array.ConvertAll(names, text => texts.Add(text)), (UIntPtr)names.Length,
                    codes, (UIntPtr)codes.Length));
            }
        }

        /// <summary>Writes the trace to a file. It replaces an existing trace, but no other file.</summary>
        public TraceWriter Write(string path) {
            return After(Native.hitreg_trace_write(this, Utf8.Bytes(path)));
        }

        TraceWriter Column(string name, string unit, FieldType type, void* values, int rows) {
            return After(Native.hitreg_trace_column(
                this, Utf8.Bytes(name), Utf8.Bytes(unit), (uint)type, values, (UIntPtr)rows));
        }

        TraceWriter After(Code code) {
            HitregException.Check(code);
            return this;
        }

        /// <summary>Frees the trace.</summary>
        protected override bool ReleaseHandle() {
            Native.hitreg_trace_free(handle);
            return true;
        }
    }
}
