using System;

namespace Hitreg {
    /// <summary>The type of a field or a column.</summary>
    public enum FieldType : uint {
        /// <summary>32-bit float.</summary>
        F32 = 0,
        /// <summary>Signed 32-bit integer.</summary>
        I32 = 1,
        /// <summary>Unsigned 32-bit integer; also flags and counters.</summary>
        U32 = 2,
        /// <summary>Signed 64-bit integer.</summary>
        I64 = 3,
        /// <summary>Unsigned 64-bit integer; also ids and hashes.</summary>
        U64 = 4,
        /// <summary>64-bit float.</summary>
        F64 = 5,
        /// <summary>0 or 1.</summary>
        Bool = 6,
        /// <summary>A text that repeats, such as the name of a weapon.</summary>
        Text = 7,
    }

    /// <summary>Who determines the value of a field, and so what a client does with it on an ack.</summary>
    public enum Scope : uint {
        /// <summary>Movement: clients predict it, and compare it on an ack.</summary>
        Movement = 0,
        /// <summary>Weapons: clients that predict weapons predict it, and compare it on an ack.</summary>
        Weapons = 1,
        /// <summary>Only the server, such as health: clients adopt it on an ack.</summary>
        Status = 2,
    }

    /// <summary>What a field measures.</summary>
    public enum Meaning : uint {
        /// <summary>None of the others.</summary>
        Plain = 0,
        /// <summary>A coordinate of a position; in units by default.</summary>
        Position = 1,
        /// <summary>A component of a velocity; in units/s by default.</summary>
        Velocity = 2,
        /// <summary>An angle in degrees. Three consecutive angles are pitch, yaw and roll.</summary>
        Angle = 3,
        /// <summary>A component of a unit vector.</summary>
        Direction = 4,
        /// <summary>A counter: any change means that an event happened, whatever its size.</summary>
        Counter = 5,
        /// <summary>A flag, or a set of flags as bits.</summary>
        Flag = 6,
        /// <summary>A value of an enumeration.</summary>
        Name = 7,
        /// <summary>A point in time or a duration; in milliseconds by default.</summary>
        Time = 8,
    }

    /// <summary>A field of an entity's state, or of a usercmd.</summary>
    public readonly struct Field {
        readonly string name, unit;
        readonly FieldType type;
        readonly Scope scope;
        readonly Meaning meaning;

        /// <summary>Describes a field.</summary>
        /// <param name="name">Unique in its class. Components of a vector share the first part: <c>v.x</c>.</param>
        /// <param name="type">The type of its values.</param>
        /// <param name="scope">Who determines its values; no effect on fields of usercmds.</param>
        /// <param name="meaning">What it measures.</param>
        /// <param name="unit">Null for the default of the meaning.</param>
        public Field(string name, FieldType type, Scope scope = Scope.Movement, Meaning meaning = Meaning.Plain,
            string unit = null) {
            this.name = name;
            this.type = type;
            this.scope = scope;
            this.meaning = meaning;
            this.unit = unit;
        }

        internal NativeField ToNative(UnmanagedTexts texts) {
            return new NativeField {
                Name = texts.Add(name),
                ValueType = (uint)type,
                Scope = (uint)scope,
                Meaning = (uint)meaning,
                Unit = texts.Add(unit),
            };
        }
    }

    /// <summary>A column of a table of your own.</summary>
    public readonly struct Column {
        readonly string name;
        readonly FieldType type;

        /// <summary>Describes a column. The name is unique in its table, and not <c>at_us</c>.</summary>
        public Column(string name, FieldType type) {
            this.name = name;
            this.type = type;
        }

        internal NativeColumn ToNative(UnmanagedTexts texts) {
            return new NativeColumn { Name = texts.Add(name), ValueType = (uint)type };
        }
    }

    /// <summary>
    /// What a session is: its game, players, settings, and the fields of its entities. It can describe several recorders.
    /// Every method returns the description.
    /// </summary>
    public sealed class Description : Handle {
        /// <summary>Creates the description of a session of a game.</summary>
        public Description(string game) {
            SetHandle(Native.hitreg_description_new(Utf8.Bytes(game)));
            if (IsInvalid) {
                throw HitregException.Latest(Code.Null);
            }
        }

        /// <summary>Adds the next player, numbered from 0. Pass a pseudonym.</summary>
        public Description Player(string name) {
            return After(Native.hitreg_description_player(this, Utf8.Bytes(name)));
        }

        /// <summary>Sets the server's tick rate, 1 to 1,000 Hz.</summary>
        public Description TickHz(int hz) {
            return After(Native.hitreg_description_tick_hz(this, (uint)hz));
        }

        /// <summary>Sets the map's name, and its bytes unless the replay loads the map from its own files.</summary>
        public Description Map(string name, byte[] bytes = null) {
            var length = (UIntPtr)(bytes == null ? 0 : bytes.Length);
            return After(Native.hitreg_description_map(this, Utf8.Bytes(name), bytes, length));
        }

        /// <summary>Sets the random seed of the session.</summary>
        public Description Seed(ulong seed) {
            return After(Native.hitreg_description_seed(this, seed));
        }

        /// <summary>Adds a setting under the game's own name, such as <c>mygame.friction</c>.</summary>
        public Description Setting(string key, string value) {
            return After(Native.hitreg_description_setting(this, Utf8.Bytes(key), Utf8.Bytes(value)));
        }

        /// <summary>Declares that the log holds the server's side. All sides pass the same session.</summary>
        public Description ServerSide(ulong session) {
            return After(Native.hitreg_description_side(this, session, -1));
        }

        /// <summary>Declares that the log holds the side of a player's client, by that client's clock.</summary>
        public Description ClientSide(ulong session, int player) {
            return After(Native.hitreg_description_side(this, session, player));
        }

        /// <summary>
        /// Declares an optional command of this build: <c>step</c> or <c>record</c>. Only traces store it.
        /// </summary>
        public Description Capability(string name) {
            return After(Native.hitreg_description_capability(this, Utf8.Bytes(name)));
        }

        /// <summary>Declares that y points down in the game's world, as on a screen. Pages draw it so.</summary>
        public Description YDown() {
            return Setting("recorder.y_axis", "down");
        }

        /// <summary>Declares that the server records usercmds on arrival: their time is the arrival time.</summary>
        public Description UsercmdsAsReceived() {
            return Setting("recorder.usercmds", "as_received");
        }

        /// <summary>Adds the next class of entities, numbered from 0, with the fields of their states.</summary>
        public Description Class(string name, params Field[] fields) {
            using (var texts = new UnmanagedTexts()) {
                return After(Native.hitreg_description_class(
                    this, Utf8.Bytes(name), Array.ConvertAll(fields, field => field.ToNative(texts)),
                    (UIntPtr)fields.Length));
            }
        }

        /// <summary>Adds fields of your own to all usercmds, for <see cref="Usercmd.Fields"/>.</summary>
        public Description UsercmdFields(params Field[] fields) {
            using (var texts = new UnmanagedTexts()) {
                return After(Native.hitreg_description_usercmd_fields(
                    this, Array.ConvertAll(fields, field => field.ToNative(texts)), (UIntPtr)fields.Length));
            }
        }

        /// <summary>Declares that usercmds carry bytes of your own, for <see cref="Usercmd.Bytes"/>.</summary>
        public Description UsercmdBytes() {
            return After(Native.hitreg_description_usercmd_bytes(this));
        }

        /// <summary>Adds the next table of your own, numbered from 0; see <see cref="Tables.Custom"/>.</summary>
        public Description Table(string name, params Column[] columns) {
            using (var texts = new UnmanagedTexts()) {
                return After(Native.hitreg_description_table(
                    this, Utf8.Bytes(name), Array.ConvertAll(columns, column => column.ToNative(texts)),
                    (UIntPtr)columns.Length));
            }
        }

        Description After(Code code) {
            HitregException.Check(code);
            return this;
        }

        /// <summary>Frees the description.</summary>
        protected override bool ReleaseHandle() {
            Native.hitreg_description_free(handle);
            return true;
        }
    }
}
