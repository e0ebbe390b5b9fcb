using System;

namespace Hitreg {
    /// <summary>Result of a call of the library.</summary>
    public enum Code {
        /// <summary>Success.</summary>
        Ok = 0,
        /// <summary>A handle or pointer is null.</summary>
        Null = 1,
        /// <summary>The size of a struct is unknown to this library.</summary>
        Size = 2,
        /// <summary>A text is not UTF-8, an enum value does not exist, or a number does not fit its column.</summary>
        Value = 3,
        /// <summary>The row does not fit its table or the description.</summary>
        Misfit = 4,
        /// <summary>The row is older than the reorder window.</summary>
        Late = 5,
        /// <summary>The recorder cannot keep up. The row is lost, and a gap in the log marks it.</summary>
        Overrun = 6,
        /// <summary>The recording or the playback has ended.</summary>
        Finished = 7,
        /// <summary>A write error stopped the recording.</summary>
        Stopped = 8,
        /// <summary>The description is invalid.</summary>
        Description = 9,
        /// <summary>A file cannot be read or written.</summary>
        File = 10,
        /// <summary>The row does not exist.</summary>
        NoRow = 11,
        /// <summary>The stream belongs to another thread, or the recorder to the parent process.</summary>
        Thread = 12,
        /// <summary>The library panicked. Please report it.</summary>
        Panic = 13,
    }

    /// <summary>A call that the library refused, with its reason.</summary>
    public sealed class HitregException : Exception {
        /// <summary>The reason.</summary>
        public Code Code { get; }

        /// <summary>
        /// The exit code of a build that ends with this error: 125 if it does not know the arguments or plays another
        /// game, 128 for other trouble.
        /// </summary>
        public int ExitCode { get; }

        HitregException(Code code, int exitCode, string message) : base(message) {
            Code = code;
            ExitCode = exitCode;
        }

        /// <summary>The error of this thread's latest call.</summary>
        internal static unsafe HitregException Latest(Code code, int exitCode = 128) {
            return new HitregException(code, exitCode, Utf8.Read(Native.hitreg_last_error()));
        }

        /// <summary>Throws unless a call succeeded.</summary>
        internal static void Check(Code code) {
            if (code != Code.Ok) {
                throw Latest(code);
            }
        }

        /// <summary>Returns whether a row exists; throws if the call failed for another reason.</summary>
        internal static bool Found(Code code) {
            if (code != Code.NoRow) {
                Check(code);
            }
            return code == Code.Ok;
        }
    }
}
