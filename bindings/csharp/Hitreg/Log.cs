using System;
using System.Runtime.InteropServices;

namespace Hitreg {
    /// <summary>
    /// A log in memory. It is immutable: any number of threads may read it at once.
    ///
    /// Methods that read a row return false if the row does not exist. Lists go into the arrays of the struct that the
    /// method gets, if these are long enough.
    /// </summary>
    public sealed unsafe class Log : Handle {
        /// <summary>The playback that owns the log; null if the log owns itself.</summary>
        readonly Playback playback;

        /// <summary>Reads a log into memory.</summary>
        public Log(string path) {
            IntPtr log;
            HitregException.Check(Native.hitreg_log_open(Utf8.Bytes(path), out log));
            SetHandle(log);
        }

        /// <summary>The log of a playback. It keeps the playback in memory until both are disposed.</summary>
        internal Log(Playback playback, IntPtr log) {
            bool added = false;
            playback.DangerousAddRef(ref added);
            this.playback = playback;
            SetHandle(log);
        }

        /// <summary>The game's name.</summary>
        public string Game {
            get {
                string text = Utf8.Read(Native.hitreg_log_game(this));
                GC.KeepAlive(this);
                return text;
            }
        }

        /// <summary>The map's name.</summary>
        public string MapName {
            get {
                IntPtr bytes;
                UIntPtr length;
                string text = Utf8.Read(Native.hitreg_log_map(this, out bytes, out length));
                GC.KeepAlive(this);
                return text;
            }
        }

        /// <summary>A copy of the map's bytes.</summary>
        public byte[] MapBytes {
            get {
                IntPtr bytes;
                UIntPtr length;
                Native.hitreg_log_map(this, out bytes, out length);
                var copy = new byte[(int)length];
                if (copy.Length > 0) {
                    Marshal.Copy(bytes, copy, 0, copy.Length);
                }
                GC.KeepAlive(this);
                return copy;
            }
        }

        /// <summary>The session's random seed.</summary>
        public ulong Seed {
            get { return Native.hitreg_log_seed(this); }
        }

        /// <summary>A setting of the session; null if the log has no setting of this name.</summary>
        public string Setting(string key) {
            string text = Utf8.Read(Native.hitreg_log_setting(this, Utf8.Bytes(key)));
            GC.KeepAlive(this);
            return text;
        }

        /// <summary>All settings of the session, in the order of the log.</summary>
        public System.Collections.Generic.List<System.Collections.Generic.KeyValuePair<string, string>> Settings() {
            var all = new System.Collections.Generic.List<System.Collections.Generic.KeyValuePair<string, string>>();
            byte* key, value;
            for (int index = 0; HitregException.Found(
                Native.hitreg_log_setting_at(this, (UIntPtr)index, out key, out value)); index++) {
                all.Add(new System.Collections.Generic.KeyValuePair<string, string>(Utf8.Read(key), Utf8.Read(value)));
            }
            GC.KeepAlive(this);
            return all;
        }

        /// <summary>The number of players.</summary>
        public int Players {
            get { return (int)Native.hitreg_log_players(this); }
        }

        /// <summary>Finds a table by its name, for tables of your own. Returns false if the log has none.</summary>
        public bool FindTable(string name, out Table table) {
            uint number;
            bool found = HitregException.Found(Native.hitreg_log_table(this, Utf8.Bytes(name), out number));
            table = (Table)number;
            return found;
        }

        /// <summary>A series of a table by its index, in ascending order. Returns false after the last.</summary>
        public bool ReadSeries(Table table, int index, out int series) {
            uint number;
            bool found = HitregException.Found(
                Native.hitreg_log_series(this, (uint)table, (UIntPtr)(uint)index, out number));
            series = (int)number;
            return found;
        }

        /// <summary>The number of rows of a series of a table.</summary>
        public int Count(Table table, int series = 0) {
            UIntPtr count;
            HitregException.Check(Native.hitreg_log_count(this, (uint)table, (uint)series, out count));
            return (int)count;
        }

        /// <summary>
        /// Reads a row as <see cref="RowStream.PushRow"/> takes it: its time and its first values. Rows without a time
        /// have time 0. Lists and texts of the values are valid until the log is disposed.
        /// </summary>
        public bool ReadRow(Table table, int series, int index, out long atUs, Items<Value> values) {
            fixed (Value* row = values.Array) {
                return Row(table, series, index, out atUs, row, values.Count);
            }
        }

        /// <summary>The text of a value of this log.</summary>
        public string Text(in Value value) {
            if (IsClosed) {
                throw new ObjectDisposedException("Log");
            }
            string text = Utf8.Read((byte*)value.Of(ValueKind.Text).Pointer);
            GC.KeepAlive(this);
            return text;
        }

        /// <summary>The text in two cells of a state of this log.</summary>
        public string Text(Items<uint> cells, int at) {
            uint* two = stackalloc uint[2];
            two[0] = cells[at];
            two[1] = cells[at + 1];
            string text = Utf8.Read(Native.hitreg_log_text(this, two));
            GC.KeepAlive(this);
            return text;
        }

        /// <summary>Reads a tick.</summary>
        public bool ReadTick(int index, out Tick tick) {
            Value* row = stackalloc Value[2];
            bool found = Row(Table.Ticks, 0, index, out tick.AtUs, row, 2);
            tick.Number = (uint)row[0].Bits;
            tick.Hash = row[1].Kind == ValueKind.None ? (ulong?)null : (ulong)row[1].Bits;
            return found;
        }

        /// <summary>Reads a state. States are in the order of ticks, viewers (-1 first) and entities.</summary>
        public bool ReadState(int index, ref State state) {
            Value* row = stackalloc Value[5];
            long atUs;
            if (!Row(Table.States, 0, index, out atUs, row, 5)) {
                return false;
            }
            state.Tick = (uint)row[0].Bits;
            state.Viewer = (int)row[1].Bits;
            state.Entity = (uint)row[2].Bits;
            state.ClassNumber = (uint)row[3].Bits;
            state.Cells = state.Cells.Resize((int)row[4].Count);
            fixed (uint* cells = state.Cells.Array) {
                Copy(in row[4], cells, sizeof(uint));
            }
            return true;
        }

        /// <summary>Reads how the server handled a usercmd of a player, in the order of handling.</summary>
        public bool ReadExecuted(int player, int index, out Executed executed) {
            Value* row = stackalloc Value[3];
            long atUs;
            bool found = Row(Table.Executed, player, index, out atUs, row, 3);
            executed.Usercmd = (uint)row[0].Bits;
            executed.Tick = (uint)row[1].Bits;
            executed.How = (How)row[2].Bits;
            return found;
        }

        /// <summary>Reads damage to an entity. The weapon is a text of this log; see <see cref="Text"/>.</summary>
        public bool ReadDamage(int index, out Damage damage) {
            Value* row = stackalloc Value[9];
            bool found = Row(Table.Damage, 0, index, out damage.AtUs, row, 9);
            damage.Tick = (uint)row[0].Bits;
            damage.Victim = (uint)row[1].Bits;
            damage.Attacker = (int)row[2].Bits;
            damage.Amount = (int)row[3].Bits;
            damage.Weapon = row[4];
            damage.Armour = row[5];
            damage.ForceX = row[6];
            damage.ForceY = row[7];
            damage.ForceZ = row[8];
            return found;
        }

        /// <summary>Reads a change of a player's presence.</summary>
        public bool ReadPresence(int player, int index, out PresenceChange change) {
            Value* row = stackalloc Value[2];
            bool found = Row(Table.Presence, player, index, out change.AtUs, row, 2);
            change.Tick = (uint)row[0].Bits;
            change.Presence = (Presence)row[1].Bits;
            return found;
        }

        /// <summary>
        /// Reads a usercmd of a player, with its bytes and its fields of your own. Texts among the fields are valid
        /// until the log is disposed.
        /// </summary>
        public bool ReadUsercmd(int player, int index, ref Usercmd usercmd) {
            Value* row = stackalloc Value[14];
            long atUs;
            if (!Row(Table.Frames, player, index, out atUs, row, 14)) {
                return false;
            }
            usercmd.AtUs = atUs;
            usercmd.Seq = (uint)row[0].Bits;
            usercmd.ServerTimeUs = row[1].Bits;
            usercmd.LerpMs = (uint)row[2].Bits;
            usercmd.Msec = (uint)row[3].Bits;
            usercmd.Pitch = row[4].Float;
            usercmd.Yaw = row[5].Float;
            usercmd.Roll = row[6].Float;
            usercmd.Forwardmove = row[7].Float;
            usercmd.Sidemove = row[8].Float;
            usercmd.Upmove = row[9].Float;
            usercmd.Buttons = (uint)row[10].Bits;
            usercmd.Impulse = (uint)row[11].Bits;
            usercmd.Bytes = usercmd.Bytes.Resize((int)row[12].Count);
            usercmd.Fields = usercmd.Fields.Resize((int)row[13].Count);
            fixed (byte* bytes = usercmd.Bytes.Array)
            fixed (Value* fields = usercmd.Fields.Array) {
                Copy(in row[12], bytes, sizeof(byte));
                Copy(in row[13], fields, sizeof(Value));
            }
            return true;
        }

        /// <summary>
        /// Reads a usercmd of a player by its number; see <see cref="ReadUsercmd"/>. If several usercmds have the
        /// number, this is the first one in the log.
        /// </summary>
        public bool FindUsercmd(int player, uint seq, ref Usercmd usercmd) {
            UIntPtr index;
            return HitregException.Found(Native.hitreg_log_usercmd_index(this, (uint)player, seq, out index))
                && ReadUsercmd(player, (int)index, ref usercmd);
        }

        /// <summary>Reads a shot of a player as the client predicted it.</summary>
        public bool ReadPredicted(int player, int index, out Shot shot) {
            return ReadShot(Table.Predicted, player, index, out shot);
        }

        /// <summary>Reads a shot of a player as the server judged it.</summary>
        public bool ReadJudged(int player, int index, out Shot shot) {
            return ReadShot(Table.Judged, player, index, out shot);
        }

        /// <summary>
        /// Reads a shot from <see cref="Table.Predicted"/> or <see cref="Table.Judged"/>. The weapon is a text of this
        /// log; see <see cref="Text"/>.
        /// </summary>
        public bool ReadShot(Table table, int player, int index, out Shot shot) {
            Value* row = stackalloc Value[10];
            bool found = Row(table, player, index, out shot.AtUs, row, 10);
            shot.Usercmd = (uint)row[0].Bits;
            shot.Index = (uint)row[1].Bits;
            shot.Reason = (Reason)row[2].Bits;
            shot.Target = (int)row[3].Bits;
            shot.Hitgroup = (uint)row[4].Bits;
            shot.Damage = (int)row[5].Bits;
            shot.RewoundUs = (uint)row[6].Bits;
            shot.Weapon = row[7];
            shot.Impact = row[8].Bits != 0;
            shot.Pellets = row[9];
            return found;
        }

        /// <summary>Reads a packet that a player's client sent.</summary>
        public bool ReadSent(int player, int index, out Packet packet) {
            Value* row = stackalloc Value[5];
            bool found = Row(Table.Sent, player, index, out packet.AtUs, row, 5);
            packet.Number = (uint)row[0].Bits;
            packet.Newest = (uint)row[1].Bits;
            packet.Count = (uint)row[2].Bits;
            packet.Ack = (uint)row[3].Bits;
            packet.Bytes = (uint)row[4].Bits;
            return found;
        }

        /// <summary>Reads a snapshot that the server sent to a player.</summary>
        public bool ReadSnapshot(int player, int index, ref Snapshot snapshot) {
            Value* row = stackalloc Value[8];
            long atUs;
            if (!Row(Table.Snapshots, player, index, out atUs, row, 8)) {
                return false;
            }
            snapshot.AtUs = atUs;
            snapshot.Seq = (uint)row[0].Bits;
            snapshot.Tick = (uint)row[1].Bits;
            snapshot.ServerTimeUs = row[2].Bits;
            snapshot.Ack = (uint)row[3].Bits;
            snapshot.Bytes = (uint)row[4].Bits;
            snapshot.Choked = (uint)row[5].Bits;
            snapshot.Entities = snapshot.Entities.Resize((int)row[6].Count);
            snapshot.Effects = snapshot.Effects.Resize((int)row[7].Count);
            fixed (ushort* entities = snapshot.Entities.Array)
            fixed (Effect* effects = snapshot.Effects.Array) {
                Copy(in row[6], entities, sizeof(ushort));
                Copy(in row[7], effects, sizeof(Effect));
            }
            return true;
        }

        /// <summary>Reads the arrival of a player's packet at the server.</summary>
        public bool ReadReached(int player, int index, out Arrival arrival) {
            return ReadArrival(Table.Reached, player, index, out arrival);
        }

        /// <summary>Reads the arrival of a snapshot at a player's client.</summary>
        public bool ReadReceived(int player, int index, out Arrival arrival) {
            return ReadArrival(Table.Received, player, index, out arrival);
        }

        /// <summary>Reads an arrival from <see cref="Table.Reached"/> or <see cref="Table.Received"/>.</summary>
        public bool ReadArrival(Table table, int player, int index, out Arrival arrival) {
            Value row;
            bool found = Row(table, player, index, out arrival.AtUs, &row, 1);
            arrival.Number = (uint)row.Bits;
            return found;
        }

        /// <summary>Reads a row; leaves empty values if it does not exist.</summary>
        bool Row(Table table, int series, int index, out long atUs, Value* row, int count) {
            for (int column = 0; column < count; column++) {
                row[column] = default(Value);
            }
            atUs = 0;
            return HitregException.Found(Native.hitreg_log_row(
                this, (uint)table, (uint)series, (UIntPtr)(uint)index, out atUs, row, (UIntPtr)(uint)count));
        }

        static void Copy(in Value list, void* to, int itemBytes) {
            if (list.Count == 0) {
                return;
            }
            if (list.Of(ValueKind.List).ItemBytes != itemBytes) {
                throw new InvalidOperationException("items have " + list.ItemBytes + " bytes, not " + itemBytes);
            }
            long bytes = (long)list.Count * itemBytes;
            Buffer.MemoryCopy((void*)list.Pointer, to, bytes, bytes);
        }

        /// <summary>Frees the log.</summary>
        protected override bool ReleaseHandle() {
            if (playback == null) {
                Native.hitreg_log_free(handle);
            } else {
                playback.DangerousRelease();
            }
            return true;
        }
    }
}
