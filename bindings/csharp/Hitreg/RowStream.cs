using System;
using System.Collections.Generic;

namespace Hitreg {
    /// <summary>
    /// A handle for one thread to push rows. It belongs to the first thread that pushes; <see cref="Release"/> makes it
    /// free for another. No push allocates.
    ///
    /// A push returns false if the recorder lost the row because it cannot keep up, because the row is older than the
    /// reorder window, or because a write error stopped the recording; see <see cref="LatestLoss"/>. The game can go
    /// on. A row that does not fit its table is a mistake of the program, and throws <see cref="HitregException"/>.
    /// </summary>
    public sealed unsafe class RowStream : Handle {
        struct KnownText {
            internal IntPtr Text;
            internal ulong Cells;
        }

        readonly UnmanagedTexts texts = new UnmanagedTexts();
        readonly Dictionary<string, KnownText> known = new Dictionary<string, KnownText>();

        internal RowStream(IntPtr stream) {
            SetHandle(stream);
        }

        /// <summary>Why a push last returned false: overrun, late or stopped. Ok if none did.</summary>
        public Code LatestLoss { get; private set; }

        /// <summary>Gives up the stream, so that another thread can push. Only its owner may call this.</summary>
        public void Release() {
            HitregException.Check(Native.hitreg_stream_release(this));
        }

        /// <summary>
        /// A text as a value, for tables of your own and fields of usercmds. It is valid until the stream is disposed.
        /// The first use of each text allocates; the recorder remembers at most 4 MiB of texts.
        /// </summary>
        public Value Text(string text) {
            return Value.Text(Known(text).Text);
        }

        /// <summary>Writes a text as two cells of a state. Returns the index after it.</summary>
        public int PutText(uint[] cells, int at, string text) {
            return Cells.Put(cells, at, Known(text).Cells);
        }

        KnownText Known(string text) {
            KnownText entry;
            if (!known.TryGetValue(text, out entry)) {
                byte[] bytes = Utf8.Bytes(text);
                uint* cells = stackalloc uint[2];
                HitregException.Check(Native.hitreg_put_text(this, bytes, cells));
                entry.Text = texts.Add(bytes);
                entry.Cells = (ulong)cells[1] << 32 | cells[0];
                known.Add(text, entry);
            }
            return entry;
        }

        /// <summary>
        /// Pushes a row: one value for each column of the table, in order. The series is the player; 0 in tables
        /// without players; any number in a table of your own.
        /// </summary>
        public bool PushRow(Table table, int series, long atUs, Items<Value> values) {
            fixed (Value* row = values.Array) {
                return Push(table, series, atUs, row, values.Count);
            }
        }

        /// <summary>
        /// Pushes the end of a server tick. A hash of 0 is none. Later ticks have higher numbers. A tick that contradicts
        /// another one is refused (<see cref="Code.Misfit"/>), as are its states and usercmds.
        /// </summary>
        public bool PushTick(uint tick, long atUs, ulong? hash = null) {
            Value* row = stackalloc Value[2];
            row[0] = tick;
            row[1] = hash.HasValue ? hash.GetValueOrDefault() : default(Value);
            return Push(Table.Ticks, 0, atUs, row, 2);
        }

        /// <summary>Pushes the state of an entity after a tick. Push the tick first.</summary>
        public bool PushState(in State state) {
            fixed (uint* cells = state.Cells.Array) {
                return PushState(state.Tick, state.Viewer, state.Entity, state.ClassNumber, cells, state.Cells.Count);
            }
        }

        /// <summary>Pushes the state of an entity that all players share. Push the tick first.</summary>
        public bool PushBody(uint tick, uint entity, uint classNumber, Items<uint> cells) {
            fixed (uint* first = cells.Array) {
                return PushState(tick, -1, entity, classNumber, first, cells.Count);
            }
        }

        /// <summary>Pushes the state of an entity whose cells are at an address.</summary>
        public bool PushState(uint tick, int viewer, uint entity, uint classNumber, uint* cells, int count) {
            Value* row = stackalloc Value[5];
            row[0] = tick;
            row[1] = viewer;
            row[2] = entity;
            row[3] = classNumber;
            row[4] = Value.List(cells, count, sizeof(uint));
            return Push(Table.States, 0, 0, row, 5);
        }

        /// <summary>Pushes how the server handled a usercmd, in the order of handling.</summary>
        public bool PushExecuted(int player, uint usercmd, uint tick, How how) {
            Value* row = stackalloc Value[3];
            row[0] = usercmd;
            row[1] = tick;
            row[2] = (uint)how;
            return Push(Table.Executed, player, 0, row, 3);
        }

        /// <summary>Pushes damage to an entity.</summary>
        public bool PushDamage(in Damage damage) {
            Value* row = stackalloc Value[9];
            row[0] = damage.Tick;
            row[1] = damage.Victim;
            row[2] = damage.Attacker;
            row[3] = damage.Amount;
            row[4] = damage.Weapon;
            row[5] = damage.Armour;
            row[6] = damage.ForceX;
            row[7] = damage.ForceY;
            row[8] = damage.ForceZ;
            return Push(Table.Damage, 0, damage.AtUs, row, 9);
        }

        /// <summary>Pushes that a player joined or left, with the first tick with or without the player.</summary>
        public bool PushPresence(int player, uint tick, long atUs, Presence presence) {
            Value* row = stackalloc Value[2];
            row[0] = tick;
            row[1] = (uint)presence;
            return Push(Table.Presence, player, atUs, row, 2);
        }

        /// <summary>Pushes a client frame's usercmd.</summary>
        public bool PushUsercmd(int player, in Usercmd usercmd) {
            fixed (byte* bytes = usercmd.Bytes.Array)
            fixed (Value* fields = usercmd.Fields.Array) {
                Value* row = stackalloc Value[14];
                row[0] = usercmd.Seq;
                row[1] = usercmd.ServerTimeUs;
                row[2] = usercmd.LerpMs;
                row[3] = usercmd.Msec;
                row[4] = usercmd.Pitch;
                row[5] = usercmd.Yaw;
                row[6] = usercmd.Roll;
                row[7] = usercmd.Forwardmove;
                row[8] = usercmd.Sidemove;
                row[9] = usercmd.Upmove;
                row[10] = usercmd.Buttons;
                row[11] = usercmd.Impulse;
                row[12] = Value.List(bytes, usercmd.Bytes.Count, sizeof(byte));
                row[13] = Value.List(fields, usercmd.Fields.Count, sizeof(Value));
                return Push(Table.Frames, player, usercmd.AtUs, row, 14);
            }
        }

        /// <summary>Pushes a shot as the player's client predicted it.</summary>
        public bool PushPredicted(int player, in Shot shot) {
            return PushShot(Table.Predicted, player, in shot);
        }

        /// <summary>Pushes a shot as the server judged it.</summary>
        public bool PushJudged(int player, in Shot shot) {
            return PushShot(Table.Judged, player, in shot);
        }

        /// <summary>Pushes a shot into <see cref="Table.Predicted"/> or <see cref="Table.Judged"/>.</summary>
        public bool PushShot(Table table, int player, in Shot shot) {
            Value* row = stackalloc Value[10];
            row[0] = shot.Usercmd;
            row[1] = shot.Index;
            row[2] = (uint)shot.Reason;
            row[3] = shot.Target;
            row[4] = shot.Hitgroup;
            row[5] = shot.Damage;
            row[6] = shot.RewoundUs;
            row[7] = shot.Weapon;
            row[8] = shot.Impact;
            row[9] = shot.Pellets;
            return Push(table, player, shot.AtUs, row, 10);
        }

        /// <summary>Pushes a packet that a client sent.</summary>
        public bool PushSent(int player, in Packet packet) {
            Value* row = stackalloc Value[5];
            row[0] = packet.Number;
            row[1] = packet.Newest;
            row[2] = packet.Count;
            row[3] = packet.Ack;
            row[4] = packet.Bytes;
            return Push(Table.Sent, player, packet.AtUs, row, 5);
        }

        /// <summary>Pushes the arrival of a client's packet at the server. A duplicated packet arrives twice.</summary>
        public bool PushReached(int player, uint number, long atUs) {
            Value row = number;
            return Push(Table.Reached, player, atUs, &row, 1);
        }

        /// <summary>Pushes a snapshot that the server sent to a player.</summary>
        public bool PushSnapshot(int player, in Snapshot snapshot) {
            fixed (ushort* entities = snapshot.Entities.Array)
            fixed (Effect* effects = snapshot.Effects.Array) {
                Value* row = stackalloc Value[8];
                row[0] = snapshot.Seq;
                row[1] = snapshot.Tick;
                row[2] = snapshot.ServerTimeUs;
                row[3] = snapshot.Ack;
                row[4] = snapshot.Bytes;
                row[5] = snapshot.Choked;
                row[6] = Value.List(entities, snapshot.Entities.Count, sizeof(ushort));
                row[7] = Value.List(effects, snapshot.Effects.Count, sizeof(Effect));
                return Push(Table.Snapshots, player, snapshot.AtUs, row, 8);
            }
        }

        /// <summary>Pushes the arrival of a snapshot at its client.</summary>
        public bool PushReceived(int player, uint seq, long atUs) {
            Value row = seq;
            return Push(Table.Received, player, atUs, &row, 1);
        }

        bool Push(Table table, int series, long atUs, Value* row, int count) {
            Code code = Native.hitreg_push_row(this, (uint)table, (uint)series, atUs, row, (UIntPtr)(uint)count);
            if (code == Code.Ok) {
                return true;
            }
            if (code != Code.Overrun && code != Code.Late && code != Code.Stopped) {
                throw HitregException.Latest(code);
            }
            LatestLoss = code;
            return false;
        }

        /// <summary>Frees the stream; its rows stay in the log.</summary>
        protected override bool ReleaseHandle() {
            Native.hitreg_stream_free(handle);
            texts.Dispose();
            return true;
        }
    }
}
