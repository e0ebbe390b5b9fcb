using System;
using System.Runtime.InteropServices;

namespace Hitreg {
    /// <summary>A table of a log. <c>hitreg.h</c> lists the columns of each.</summary>
    public enum Table : uint {
        /// <summary>Usercmds.</summary>
        Frames = 0,
        /// <summary>Shots as clients predicted them.</summary>
        Predicted = 1,
        /// <summary>Shots as the server judged them.</summary>
        Judged = 2,
        /// <summary>Packets that clients sent.</summary>
        Sent = 3,
        /// <summary>Packets that reached the server.</summary>
        Reached = 4,
        /// <summary>How the server handled usercmds.</summary>
        Executed = 5,
        /// <summary>Players who joined or left.</summary>
        Presence = 6,
        /// <summary>Snapshots that the server sent.</summary>
        Snapshots = 7,
        /// <summary>Snapshots that reached their client.</summary>
        Received = 8,
        /// <summary>Ends of server ticks.</summary>
        Ticks = 9,
        /// <summary>States of entities after a tick.</summary>
        States = 10,
        /// <summary>Damage to entities.</summary>
        Damage = 11,
        /// <summary>The first table of your own; see <see cref="Tables.Custom"/>.</summary>
        Custom = 256,
    }

    /// <summary>Numbers of tables of your own.</summary>
    public static class Tables {
        /// <summary>The table of a number: 0 for the first <see cref="Description.Table"/>.</summary>
        public static Table Custom(int number) {
            return Table.Custom + (uint)number;
        }
    }

    /// <summary>The kind of a value.</summary>
    public enum ValueKind : ushort {
        /// <summary>No value.</summary>
        None = 0,
        /// <summary>An integer.</summary>
        Number = 1,
        /// <summary>A float.</summary>
        Real = 2,
        /// <summary>A list.</summary>
        List = 3,
        /// <summary>A 64-bit float.</summary>
        Real64 = 4,
        /// <summary>A text.</summary>
        Text = 5,
    }

    /// <summary>
    /// One value of a row. Numbers convert to it; <see cref="RowStream.Text"/> makes a text. The default is no value,
    /// for columns that may be empty.
    /// </summary>
    [StructLayout(LayoutKind.Explicit, Size = 16)]
    public readonly struct Value {
        [FieldOffset(0)]
        readonly ushort kind;
        [FieldOffset(2)]
        internal readonly ushort ItemBytes;
        [FieldOffset(4)]
        internal readonly uint Count;
        [FieldOffset(8)]
        internal readonly long Bits;
        [FieldOffset(8)]
        internal readonly float Float;
        [FieldOffset(8)]
        readonly double real64;
        [FieldOffset(8)]
        internal readonly IntPtr Pointer;

        Value(long number) : this() {
            kind = (ushort)ValueKind.Number;
            Bits = number;
        }

        Value(float real) : this() {
            kind = (ushort)ValueKind.Real;
            Float = real;
        }

        Value(double real) : this() {
            kind = (ushort)ValueKind.Real64;
            real64 = real;
        }

        Value(ValueKind kind, IntPtr pointer, int count, int itemBytes) : this() {
            this.kind = (ushort)kind;
            ItemBytes = (ushort)itemBytes;
            Count = (uint)count;
            Pointer = pointer;
        }

        internal static Value Text(IntPtr text) {
            return new Value(ValueKind.Text, text, 0, 0);
        }

        /// <summary>A list of items of a size. The memory must stay in place until the push returns.</summary>
        public static unsafe Value List(void* items, int count, int itemBytes) {
            return new Value(ValueKind.List, (IntPtr)items, count, itemBytes);
        }

        /// <summary>An integer; also enumerations.</summary>
        public static implicit operator Value(int number) { return new Value((long)number); }
        /// <summary>An integer.</summary>
        public static implicit operator Value(uint number) { return new Value((long)number); }
        /// <summary>An integer.</summary>
        public static implicit operator Value(long number) { return new Value(number); }
        /// <summary>An integer, as its bits.</summary>
        public static implicit operator Value(ulong number) { return new Value((long)number); }
        /// <summary>0 or 1.</summary>
        public static implicit operator Value(bool flag) { return new Value(flag ? 1L : 0); }
        /// <summary>A float.</summary>
        public static implicit operator Value(float real) { return new Value(real); }
        /// <summary>A 64-bit float. Columns of 32-bit floats refuse it.</summary>
        public static implicit operator Value(double real) { return new Value(real); }

        /// <summary>The kind.</summary>
        public ValueKind Kind {
            get { return (ValueKind)kind; }
        }

        /// <summary>The integer; unsigned ones of 64 bits as their bits.</summary>
        public long Number {
            get { return Of(ValueKind.Number).Bits; }
        }

        /// <summary>The float.</summary>
        public float Real {
            get { return Of(ValueKind.Real).Float; }
        }

        /// <summary>The 64-bit float.</summary>
        public double Real64 {
            get { return Of(ValueKind.Real64).real64; }
        }

        internal Value Of(ValueKind wanted) {
            if (Kind != wanted) {
                throw new InvalidOperationException("the value is a " + Kind + ", not a " + wanted);
            }
            return this;
        }
    }

    /// <summary>A list: the first items of an array. An array converts to a list of all its items.</summary>
    public readonly struct Items<T> where T : struct {
        /// <summary>The array; null if the list is empty.</summary>
        public readonly T[] Array;
        /// <summary>Number of items.</summary>
        public readonly int Count;

        /// <summary>The first items of an array.</summary>
        public Items(T[] array, int count) {
            if (count < 0 || count > (array == null ? 0 : array.Length)) {
                throw new ArgumentOutOfRangeException("count");
            }
            Array = array;
            Count = count;
        }

        /// <summary>All items of an array.</summary>
        public static implicit operator Items<T>(T[] array) {
            return new Items<T>(array, array == null ? 0 : array.Length);
        }

        /// <summary>An item.</summary>
        public T this[int index] {
            get {
                if ((uint)index >= (uint)Count) {
                    throw new ArgumentOutOfRangeException("index");
                }
                return Array[index];
            }
        }

        /// <summary>A list of a length, in the same array if it is long enough.</summary>
        internal Items<T> Resize(int count) {
            return new Items<T>(Array != null && Array.Length >= count ? Array : new T[count], count);
        }
    }

    /// <summary>Cells of a state: 32 bits each. Types of 64 bits and texts take two cells.</summary>
    public static unsafe class Cells {
        /// <summary>Writes a float. Each method that writes returns the index after the value.</summary>
        public static int Put(uint[] cells, int at, float real) {
            cells[at] = *(uint*)&real;
            return at + 1;
        }

        /// <summary>Writes a signed integer.</summary>
        public static int Put(uint[] cells, int at, int number) {
            cells[at] = (uint)number;
            return at + 1;
        }

        /// <summary>Writes an unsigned integer.</summary>
        public static int Put(uint[] cells, int at, uint number) {
            cells[at] = number;
            return at + 1;
        }

        /// <summary>Writes 0 or 1.</summary>
        public static int Put(uint[] cells, int at, bool flag) {
            cells[at] = flag ? 1u : 0;
            return at + 1;
        }

        /// <summary>Writes an unsigned integer of 64 bits.</summary>
        public static int Put(uint[] cells, int at, ulong number) {
            cells[at] = (uint)number;
            cells[at + 1] = (uint)(number >> 32);
            return at + 2;
        }

        /// <summary>Writes a signed integer of 64 bits.</summary>
        public static int Put(uint[] cells, int at, long number) {
            return Put(cells, at, (ulong)number);
        }

        /// <summary>Writes a 64-bit float.</summary>
        public static int Put(uint[] cells, int at, double real) {
            return Put(cells, at, *(ulong*)&real);
        }

        /// <summary>Reads a float.</summary>
        public static float GetF32(Items<uint> cells, int at) {
            uint bits = cells[at];
            return *(float*)&bits;
        }

        /// <summary>Reads an integer of 64 bits.</summary>
        public static ulong Get64(Items<uint> cells, int at) {
            return (ulong)cells[at + 1] << 32 | cells[at];
        }

        /// <summary>Reads a 64-bit float.</summary>
        public static double GetF64(Items<uint> cells, int at) {
            ulong bits = Get64(cells, at);
            return *(double*)&bits;
        }
    }

    /// <summary>The end of a tick.</summary>
    public struct Tick {
        /// <summary>Number of the tick, from 1.</summary>
        public uint Number;
        /// <summary>Time of the tick.</summary>
        public long AtUs;
        /// <summary>Hash of the state after the tick; null if it was not recorded.</summary>
        public ulong? Hash;
    }

    /// <summary>The state of an entity after a tick.</summary>
    public struct State {
        /// <summary>The tick; 0 for the first states of a log that begins inside a session.</summary>
        public uint Tick;
        /// <summary>The only player who was sent this state; -1 for all.</summary>
        public int Viewer;
        /// <summary>The entity, up to 65,535; players first.</summary>
        public uint Entity;
        /// <summary>The class of the entity: 0 for the first <see cref="Description.Class"/>.</summary>
        public uint ClassNumber;
        /// <summary>The cells of the fields of the class; see <see cref="Hitreg.Cells"/>.</summary>
        public Items<uint> Cells;
    }

    /// <summary>How the server handled a usercmd.</summary>
    public enum How : uint {
        /// <summary>The server ran it.</summary>
        Run = 0,
        /// <summary>It never arrived; the server ran the previous usercmd again in its place.</summary>
        StoodIn = 1,
        /// <summary>It never arrived, and the server ran nothing in its place.</summary>
        Missing = 2,
        /// <summary>It arrived after a later usercmd had run, and the server dropped it.</summary>
        Late = 3,
        /// <summary>The player had used up the simulation time that the server allows.</summary>
        OverBudget = 4,
    }

    /// <summary>How the server handled a usercmd.</summary>
    public struct Executed {
        /// <summary>Number of the usercmd.</summary>
        public uint Usercmd;
        /// <summary>The tick in which the server handled it.</summary>
        public uint Tick;
        /// <summary>What the server did.</summary>
        public How How;
    }

    /// <summary>
    /// Damage to an entity. A value that is not set is absent in the log. If one of the three forces is set, the others are 0.
    /// </summary>
    public struct Damage {
        /// <summary>The tick of the damage.</summary>
        public uint Tick;
        /// <summary>Time of the tick.</summary>
        public long AtUs;
        /// <summary>The entity that lost health.</summary>
        public uint Victim;
        /// <summary>The player who caused it; -1 for other causes, such as a fall.</summary>
        public int Attacker;
        /// <summary>Lost health points.</summary>
        public int Amount;
        /// <summary>The weapon: <see cref="RowStream.Text"/> of its name, or a number. A log gives a text.</summary>
        public Value Weapon;
        /// <summary>Lost armour points, up to 65,535.</summary>
        public Value Armour;
        /// <summary>The push: the change of the victim's velocity in units/s, as a float.</summary>
        public Value ForceX;
        /// <summary>The push along y.</summary>
        public Value ForceY;
        /// <summary>The push along z.</summary>
        public Value ForceZ;
    }

    /// <summary>Whether a player joined or left.</summary>
    public enum Presence : uint {
        /// <summary>The player joined.</summary>
        Joined = 0,
        /// <summary>The player left.</summary>
        Left = 1,
    }

    /// <summary>A player joined or left.</summary>
    public struct PresenceChange {
        /// <summary>The first tick with the player, or the first without.</summary>
        public uint Tick;
        /// <summary>Time of the change.</summary>
        public long AtUs;
        /// <summary>Whether the player joined or left.</summary>
        public Presence Presence;
    }

    /// <summary>A client frame's input.</summary>
    public struct Usercmd {
        /// <summary>Number of the usercmd, from 1.</summary>
        public uint Seq;
        /// <summary>Session time of the client frame. A server that does not know it sets the arrival time.</summary>
        public long AtUs;
        /// <summary>The server time on the client's clock.</summary>
        public long ServerTimeUs;
        /// <summary>How far behind <see cref="ServerTimeUs"/> the client drew other players, in milliseconds.</summary>
        public uint LerpMs;
        /// <summary>Duration of the client frame in milliseconds, up to 255.</summary>
        public uint Msec;
        /// <summary>View angle in degrees: down is positive.</summary>
        public float Pitch;
        /// <summary>View angle in degrees: counter-clockwise from +x.</summary>
        public float Yaw;
        /// <summary>View angle in degrees.</summary>
        public float Roll;
        /// <summary>Intended speed forward, in units/s.</summary>
        public float Forwardmove;
        /// <summary>Intended speed to the right, in units/s.</summary>
        public float Sidemove;
        /// <summary>Intended speed up, in units/s.</summary>
        public float Upmove;
        /// <summary>Pressed buttons, up to 16 bits.</summary>
        public uint Buttons;
        /// <summary>A one-shot request, up to 255; 0 for none.</summary>
        public uint Impulse;
        /// <summary>Bytes of your own, stored unchanged; see <see cref="Description.UsercmdBytes"/>.</summary>
        public Items<byte> Bytes;
        /// <summary>One value for each field of <see cref="Description.UsercmdFields"/>.</summary>
        public Items<Value> Fields;
    }

    /// <summary>The result of a shot.</summary>
    public enum Reason : uint {
        /// <summary>It hit a target.</summary>
        Hit = 0,
        /// <summary>The map blocked a shot that would have hit a target.</summary>
        HitWorld = 1,
        /// <summary>Its line meets no target.</summary>
        Missed = 2,
        /// <summary>It hit a target that is already dead at present; no damage.</summary>
        AlreadyDead = 3,
        /// <summary>It launched a projectile; the impact has its own row.</summary>
        Launched = 4,
    }

    /// <summary>A shot, as the client predicted it or as the server judged it.</summary>
    public struct Shot {
        /// <summary>The usercmd that fired it.</summary>
        public uint Usercmd;
        /// <summary>Time of the client frame (predicted) or of the server's tick (judged).</summary>
        public long AtUs;
        /// <summary>Index among the shots of that usercmd, from 0 up to 255; impacts have indices of their own.</summary>
        public uint Index;
        /// <summary>The result.</summary>
        public Reason Reason;
        /// <summary>The entity that was hit; -1 for none.</summary>
        public int Target;
        /// <summary>The part of the body that was hit, in the game's numbering, up to 255.</summary>
        public uint Hitgroup;
        /// <summary>Damage, in health points.</summary>
        public int Damage;
        /// <summary>How far the server rewound the targets; 0 for a prediction.</summary>
        public uint RewoundUs;
        /// <summary>The weapon: <see cref="RowStream.Text"/> of its name, or a number. A log gives a text.</summary>
        public Value Weapon;
        /// <summary>Whether it is the impact of a projectile, which a shot of the same usercmd launched.</summary>
        public bool Impact;
        /// <summary>Number of pellets that hit, up to 255, if the game counts them.</summary>
        public Value Pellets;
    }

    /// <summary>A packet that a client sent.</summary>
    public struct Packet {
        /// <summary>Number of the packet, from 1.</summary>
        public uint Number;
        /// <summary>Send time.</summary>
        public long AtUs;
        /// <summary>The newest usercmd in it.</summary>
        public uint Newest;
        /// <summary>Number of usercmds in it, up to 255.</summary>
        public uint Count;
        /// <summary>The newest snapshot that the client had received; 0 for none.</summary>
        public uint Ack;
        /// <summary>Total bytes of its datagrams, up to 65,535; 0 if unknown.</summary>
        public uint Bytes;
    }

    /// <summary>A sound or a visual effect in a snapshot, which happens once.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Effect {
        /// <summary>Number of the effect in the game's numbering, up to 255.</summary>
        public uint Kind;
        /// <summary>The entity that causes it, up to 65,535.</summary>
        public uint Entity;
        /// <summary>1: shared code causes the effect, so that its player's client can predict it.</summary>
        public uint Predictable;
        /// <summary>Position, in units.</summary>
        public float X;
        /// <summary>Position, in units.</summary>
        public float Y;
        /// <summary>Position, in units.</summary>
        public float Z;
    }

    /// <summary>A snapshot that the server sent to a player.</summary>
    public struct Snapshot {
        /// <summary>Number of the snapshot, from 1.</summary>
        public uint Seq;
        /// <summary>Send time.</summary>
        public long AtUs;
        /// <summary>The server time in the snapshot.</summary>
        public long ServerTimeUs;
        /// <summary>The tick whose state it carries.</summary>
        public uint Tick;
        /// <summary>The newest usercmd that had run; 0 for none.</summary>
        public uint Ack;
        /// <summary>Total bytes of its datagrams, up to 65,535; 0 if unknown.</summary>
        public uint Bytes;
        /// <summary>Number of updates that the client's rate limit held back before this one, up to 255.</summary>
        public uint Choked;
        /// <summary>The entities in it, in any order.</summary>
        public Items<ushort> Entities;
        /// <summary>Its sounds and visual effects.</summary>
        public Items<Effect> Effects;
    }

    /// <summary>The arrival of a packet at the server, or of a snapshot at its client.</summary>
    public struct Arrival {
        /// <summary>Number of the packet or the snapshot.</summary>
        public uint Number;
        /// <summary>Arrival time.</summary>
        public long AtUs;
    }
}
