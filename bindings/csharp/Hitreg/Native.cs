using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Hitreg {
    /// <summary>Versions.</summary>
    public static class Library {
        /// <summary>Version of the header that these bindings follow.</summary>
        public const string HeaderVersion = "0.1.0";

        /// <summary>Version of the native library.</summary>
        public static unsafe string Version {
            get { return Utf8.Read(Native.hitreg_version()); }
        }
    }

    /// <summary>A handle of the native library. Dispose frees it; so does the finalizer.</summary>
    public abstract class Handle : SafeHandle {
        internal Handle() : base(IntPtr.Zero, true) {
        }

        /// <summary>Whether there is nothing to free.</summary>
        public override bool IsInvalid {
            get { return handle == IntPtr.Zero; }
        }
    }

    /// <summary>A field of an entity's state or of a usercmd, as the library takes it.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeField {
        internal IntPtr Name;
        internal uint ValueType;
        internal uint Scope;
        internal uint Meaning;
        internal IntPtr Unit;
    }

    /// <summary>A column of a table of your own, as the library takes it.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeColumn {
        internal IntPtr Name;
        internal uint ValueType;
    }

    /// <summary>UTF-8 text with a zero byte at its end.</summary>
    internal static class Utf8 {
        internal static byte[] Bytes(string text) {
            if (text == null) {
                return null;
            }
            if (text.IndexOf('\0') >= 0) {
                throw new ArgumentException("the text has a zero character");
            }
            var bytes = new byte[Encoding.UTF8.GetByteCount(text) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        internal static unsafe string Read(byte* text) {
            if (text == null) {
                return null;
            }
            int length = 0;
            while (text[length] != 0) {
                length++;
            }
            return Encoding.UTF8.GetString(text, length);
        }
    }

    /// <summary>Texts in unmanaged memory, all freed at once.</summary>
    internal sealed class UnmanagedTexts : IDisposable {
        readonly List<IntPtr> texts = new List<IntPtr>();

        /// <summary>Copies a text; null stays null.</summary>
        internal IntPtr Add(string text) {
            return text == null ? IntPtr.Zero : Add(Utf8.Bytes(text));
        }

        internal IntPtr Add(byte[] text) {
            IntPtr copy = Marshal.AllocHGlobal(text.Length);
            texts.Add(copy);
            Marshal.Copy(text, 0, copy, text.Length);
            return copy;
        }

        public void Dispose() {
            texts.ForEach(Marshal.FreeHGlobal);
            texts.Clear();
        }
    }

    /// <summary>The functions of hitreg.h, under their own names.</summary>
    internal static unsafe class Native {
#if UNITY_IOS && !UNITY_EDITOR
        const string Name = "__Internal";
#else
        const string Name = "hitreg_capi";
#endif
        const CallingConvention C = CallingConvention.Cdecl;

        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_version();
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_last_error();

        [DllImport(Name, CallingConvention = C)]
        internal static extern IntPtr hitreg_description_new(byte[] game);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_description_free(IntPtr description);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_player(Description description, byte[] name);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_tick_hz(Description description, uint hz);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_map(
            Description description, byte[] name, byte[] bytes, UIntPtr length);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_seed(Description description, ulong seed);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_setting(Description description, byte[] key, byte[] value);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_side(Description description, ulong session, int player);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_capability(Description description, byte[] name);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_class(
            Description description, byte[] name, NativeField[] fields, UIntPtr count);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_usercmd_fields(
            Description description, NativeField[] fields, UIntPtr count);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_usercmd_bytes(Description description);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_description_table(
            Description description, byte[] name, NativeColumn[] columns, UIntPtr count);

        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_create(
            byte[] path, Description description, ref RecorderOptions options, out IntPtr recorder);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_keep_last(
            uint seconds, Description description, ref RecorderOptions options, out IntPtr recorder);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_save(Recorder recorder, byte[] path);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_trace(
            byte[] path, Description description, Log log, out IntPtr recorder);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_written(Recorder recorder, ref Written written);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_recorder_finish(Recorder recorder, ref Written written);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_recorder_free(IntPtr recorder);

        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_stream_new(Recorder recorder, out IntPtr stream);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_stream_release(RowStream stream);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_stream_free(IntPtr stream);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_push_row(
            RowStream stream, uint table, uint series, long atUs, Value* values, UIntPtr count);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_put_text(RowStream stream, byte[] text, uint* cells);

        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_open(byte[] path, out IntPtr log);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_log_free(IntPtr log);
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_log_text(Log log, uint* cells);
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_log_game(Log log);
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_log_map(Log log, out IntPtr bytes, out UIntPtr length);
        [DllImport(Name, CallingConvention = C)]
        internal static extern ulong hitreg_log_seed(Log log);
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_log_setting(Log log, byte[] key);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_setting_at(Log log, UIntPtr index, out byte* key, out byte* value);
        [DllImport(Name, CallingConvention = C)]
        internal static extern UIntPtr hitreg_log_players(Log log);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_table(Log log, byte[] name, out uint table);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_series(Log log, uint table, UIntPtr index, out uint series);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_count(Log log, uint table, uint series, out UIntPtr count);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_usercmd_index(Log log, uint player, uint seq, out UIntPtr index);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_log_row(
            Log log, uint table, uint series, UIntPtr index, out long atUs, Value* values, UIntPtr count);

        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_playback_open(
            int argc, IntPtr[] argv, byte[] game, out IntPtr playback, out int exitCode);
        [DllImport(Name, CallingConvention = C)]
        internal static extern IntPtr hitreg_playback_log(Playback playback);
        [DllImport(Name, CallingConvention = C)]
        internal static extern byte* hitreg_playback_setting(Playback playback, byte[] key);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_playback_begin(
            Playback playback, Description description, out IntPtr stream);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_playback_next(Playback playback, RowStream stream, out Step step);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_playback_finish(Playback playback);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_playback_free(IntPtr playback);

        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_new(Log log, byte[] mode, out IntPtr trace);
        [DllImport(Name, CallingConvention = C)]
        internal static extern void hitreg_trace_free(IntPtr trace);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_setting(TraceWriter trace, byte[] key, byte[] value);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_table(TraceWriter trace, byte[] name);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_key(TraceWriter trace, byte[] column);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_column(
            TraceWriter trace, byte[] name, byte[] unit, uint valueType, void* values, UIntPtr rows);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_names(
            TraceWriter trace, byte[] name, IntPtr[] names, UIntPtr count, uint[] codes, UIntPtr rows);
        [DllImport(Name, CallingConvention = C)]
        internal static extern Code hitreg_trace_write(TraceWriter trace, byte[] path);
    }
}
