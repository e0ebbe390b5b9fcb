// An authoritative game with a server, three clients and a link between them, recorded with hitreg.
//
//     Game.exe record LOG [SECONDS]     plays a session and records it
//     Game.exe replay LOG -o TRACE      replays a recorded session, as every build does
//
// Players slide over a plane and shoot along their aim. Clients predict their own movement. The server judges each
// shot against the targets as its shooter saw them. Compiled with BUG, shots also hit behind the shooter.
//
// The simulation is the same on every machine: doubles from square roots and the four operations, each result rounded
// once to a float. It calls no sines, which differ between C libraries.
using System;
using System.Collections.Generic;
using System.Globalization;
using Hitreg;

static class Rules {
    public const int Players = 3, TickUs = 20000, Attack = 1, Damage = 34;
    public const double Acceleration = 900, Range = 500, Radius = 16;
    public const uint Refire = 15, MaxRewind = 25, History = 64;
    public static double Friction = 4;
}

/// <summary>A player's state, with the fields of the class "player".</summary>
struct Body {
    public float X, Y, VelocityX, VelocityY;
    public int Health;
    public uint Refire; // ticks until it may shoot again

    public static readonly Field[] Fields = {
        new Field("origin.x", FieldType.F32, Scope.Movement, Meaning.Position),
        new Field("origin.y", FieldType.F32, Scope.Movement, Meaning.Position),
        new Field("velocity.x", FieldType.F32, Scope.Movement, Meaning.Velocity),
        new Field("velocity.y", FieldType.F32, Scope.Movement, Meaning.Velocity),
        new Field("health", FieldType.I32, Scope.Status, Meaning.Plain, "health points"),
        new Field("refire", FieldType.U32, Scope.Weapons, Meaning.Counter),
    };

    public void Put(uint[] cells) {
        int at = Cells.Put(cells, 0, X);
        at = Cells.Put(cells, at, Y);
        at = Cells.Put(cells, at, VelocityX);
        at = Cells.Put(cells, at, VelocityY);
        at = Cells.Put(cells, at, Health);
        Cells.Put(cells, at, Refire);
    }

    public void Get(Items<uint> cells) {
        X = Cells.GetF32(cells, 0);
        Y = Cells.GetF32(cells, 1);
        VelocityX = Cells.GetF32(cells, 2);
        VelocityY = Cells.GetF32(cells, 3);
        Health = (int)cells[4];
        Refire = cells[5];
    }

    public static Body Spawn(int player, uint tick) {
        return new Body { X = (tick + (uint)player * 97) % 300, Y = player * 120 - 120, Health = 100 };
    }

    /// <summary>Runs one usercmd, on the server and in the client's prediction. Returns whether it fires.</summary>
    public bool Run(in Usercmd cmd) {
        double seconds = cmd.Msec / 1000.0, keep = 1 - Rules.Friction * seconds;
        double push = cmd.Forwardmove / 320.0 * Rules.Acceleration * seconds;
        VelocityX = (float)(VelocityX * keep + cmd.Fields[0].Real * push);
        VelocityY = (float)(VelocityY * keep + cmd.Fields[1].Real * push);
        X = (float)(X + VelocityX * seconds);
        Y = (float)(Y + VelocityY * seconds);
        Refire = Refire > 0 ? Refire - 1 : 0;
        bool fires = (cmd.Buttons & Rules.Attack) != 0 && Refire == 0;
        Refire = fires ? Rules.Refire : Refire;
        return fires;
    }

    /// <summary>Returns the nearest of the targets on the line of a shot; -1 for none.</summary>
    public int Trace(int player, in Usercmd cmd, Body[] targets) {
        int found = -1;
        double nearest = Rules.Range;
        for (int other = 0; other < targets.Length; other++) {
            double x = (double)targets[other].X - X, y = (double)targets[other].Y - Y;
            double along = x * cmd.Fields[0].Real + y * cmd.Fields[1].Real;
            double beside = x * cmd.Fields[1].Real - y * cmd.Fields[0].Real;
#if BUG
            along = Math.Abs(along);
#endif
            if (other != player && along > 0 && along < nearest && Math.Abs(beside) < Rules.Radius) {
                found = other;
                nearest = along;
            }
        }
        return found;
    }
}

/// <summary>The server. It records what it does, in a session and in a replay alike.</summary>
sealed class Server {
    public readonly Body[] Bodies = new Body[Rules.Players];
    public readonly uint[] Newest = new uint[Rules.Players]; // newest usercmd that ran
    readonly Body[][] history = new Body[Rules.History][];   // bodies after a tick, for rewinding
    readonly uint[] cells = new uint[Body.Fields.Length];
    readonly RowStream stream;
    uint tick;
    long now;

    public Server(RowStream stream) {
        this.stream = stream;
        for (int player = 0; player < Rules.Players; player++)
            Bodies[player] = Body.Spawn(player, 0);
        FillHistory();
    }

    /// <summary>Takes the bodies for those of all earlier ticks, which are unknown.</summary>
    void FillHistory() {
        var before = (Body[])Bodies.Clone();
        for (int slot = 0; slot < history.Length; slot++)
            history[slot] = before;
    }

    public void SetTime(uint number, long atUs) { tick = number; now = atUs; }

    /// <summary>Puts a player where a log that begins within a session says.</summary>
    public void Restore(uint player, Items<uint> cells) {
        Bodies[player].Get(cells);
        FillHistory();
    }

    /// <summary>Runs the usercmds of a packet that have not run. Those that a later one overtakes never run.</summary>
    public void Receive(int player, Usercmd[] cmds) {
        foreach (Usercmd cmd in cmds) {
            while (Newest[player] < cmd.Seq) {
                bool runs = ++Newest[player] == cmd.Seq;
                stream.PushExecuted(player, Newest[player], tick, runs ? How.Run : How.Missing);
                if (runs)
                    Run(player, in cmd);
            }
        }
    }

    public void Run(int player, in Usercmd cmd) {
        if (!Bodies[player].Run(in cmd))
            return;
        // The shooter saw the bodies of a past tick.
        uint seen = (uint)(cmd.ServerTimeUs / Rules.TickUs);
        seen = Math.Max(seen, tick > Rules.MaxRewind ? tick - Rules.MaxRewind : 0);
        int target = Bodies[player].Trace(player, in cmd, history[seen % Rules.History]);
        var shot = new Shot { Usercmd = cmd.Seq, AtUs = now, Target = target };
        shot.RewoundUs = (tick - seen) * Rules.TickUs;
        shot.Reason = target < 0 ? Reason.Missed : Reason.Hit;
        shot.Damage = target < 0 ? 0 : Rules.Damage;
        stream.PushJudged(player, in shot);
        if (target < 0)
            return;
        Bodies[target].Health -= Rules.Damage;
        stream.PushDamage(new Damage {
            Tick = tick, AtUs = now, Victim = (uint)target, Attacker = player, Amount = Rules.Damage,
        });
        if (Bodies[target].Health <= 0)
            Bodies[target] = Body.Spawn(target, tick);
    }

    /// <summary>Pushes the tick and the states of all players.</summary>
    public void EndTick() {
        history[tick % Rules.History] = (Body[])Bodies.Clone();
        ulong hash = 14695981039346656037;
        foreach (Body body in Bodies) {
            body.Put(cells);
            foreach (uint cell in cells)
                hash = unchecked((hash ^ cell) * 1099511628211);
        }
        stream.PushTick(tick, now, hash);
        for (int player = 0; player < Rules.Players; player++) {
            Bodies[player].Put(cells);
            stream.PushBody(tick, (uint)player, 0, cells);
        }
    }
}

/// <summary>A snapshot on its way to a client. Its number is its tick.</summary>
sealed class Update {
    public uint Tick, Ack;
    public Body[] Bodies;
}

/// <summary>A client with a bot: it predicts itself, and draws the others as in the newest snapshot.</summary>
sealed class Client {
    public readonly Link<Usercmd[]> Up;
    public readonly Link<Update> Down;
    public Update Newest;
    readonly int player;
    readonly RowStream stream;
    readonly Random random;
    readonly List<Usercmd> unacked = new List<Usercmd>();
    readonly Value[] correction = new Value[2];
    Body me;

    public Client(int player, RowStream stream, Random random, Body[] bodies) {
        this.player = player;
        this.stream = stream;
        this.random = random;
        Up = new Link<Usercmd[]>(random);
        Down = new Link<Update>(random);
        me = bodies[player];
        Newest = new Update { Bodies = (Body[])bodies.Clone() };
    }

    /// <summary>Makes a usercmd and predicts it. Returns the newest three: one lost packet loses none.</summary>
    public Usercmd[] Frame(uint seq, long now) {
        Body target = Newest.Bodies[(player + 1 + (int)(seq / 200) % (Rules.Players - 1)) % Rules.Players];
        double x = (double)target.X - me.X + random.Next(30) - 15, y = (double)target.Y - me.Y + random.Next(30) - 15;
        double length = Math.Max(1, Math.Sqrt(x * x + y * y)), flee = seq / 100 % 4 == 3 ? -1 : 1;
        var cmd = new Usercmd {
            Seq = seq, AtUs = now, ServerTimeUs = (long)Newest.Tick * Rules.TickUs, Msec = Rules.TickUs / 1000,
            Forwardmove = seq / 70 % 2 == 0 ? 320 : 160, Buttons = random.Next(3) == 0 ? Rules.Attack : 0u,
            Fields = new Value[] { (float)(flee * x / length), (float)(flee * y / length) },
        };
        stream.PushUsercmd(player, in cmd);
        unacked.Add(cmd);
        if (me.Run(in cmd)) {
            var shot = new Shot { Usercmd = seq, AtUs = now, Target = me.Trace(player, in cmd, Newest.Bodies) };
            shot.Reason = shot.Target < 0 ? Reason.Missed : Reason.Hit;
            shot.Damage = shot.Target < 0 ? 0 : Rules.Damage;
            stream.PushPredicted(player, in shot);
        }
        int first = Math.Max(0, unacked.Count - 3);
        return unacked.GetRange(first, unacked.Count - first).ToArray();
    }

    /// <summary>Takes the server's state, runs the unacked usercmds again, and records a correction.</summary>
    public void Receive(Update update, long now) {
        stream.PushReceived(player, update.Tick, now);
        if (update.Tick < Newest.Tick)
            return;
        Newest = update;
        unacked.RemoveAll(cmd => cmd.Seq <= update.Ack);
        Body predicted = update.Bodies[player];
        unacked.ForEach(cmd => predicted.Run(in cmd));
        double x = (double)predicted.X - me.X, y = (double)predicted.Y - me.Y;
        correction[0] = update.Ack;
        correction[1] = (float)Math.Sqrt(x * x + y * y);
        if (x != 0 || y != 0)
            stream.PushRow(Tables.Custom(0), player, now, correction);
        me = predicted;
    }
}

/// <summary>A link with a delay of two to four ticks, and loss.</summary>
sealed class Link<T> {
    readonly List<KeyValuePair<uint, T>> flying = new List<KeyValuePair<uint, T>>(); // by their time of arrival
    readonly Random random;

    public Link(Random random) { this.random = random; }

    public void Send(uint tick, T packet) {
        if (random.Next(12) > 0)
            flying.Add(new KeyValuePair<uint, T>(tick + 2 + (uint)random.Next(3), packet));
    }

    public List<T> Arrived(uint tick) {
        List<T> arrived = flying.FindAll(packet => packet.Key == tick).ConvertAll(packet => packet.Value);
        flying.RemoveAll(packet => packet.Key == tick);
        return arrived;
    }
}

static class Program {
    const string Game = "aim", FrictionSetting = "aim.friction";

    static Description Describe() {
        string friction = Rules.Friction.ToString(CultureInfo.InvariantCulture);
        return new Description(Game)
            .TickHz(1000000 / Rules.TickUs).Map("plane").Setting(FrictionSetting, friction)
            .Player("p0").Player("p1").Player("p2").Class("player", Body.Fields)
            .UsercmdFields(
                new Field("aim.x", FieldType.F32, Scope.Movement, Meaning.Direction),
                new Field("aim.y", FieldType.F32, Scope.Movement, Meaning.Direction))
            .Table("corrections", new Column("usercmd", FieldType.U32), new Column("distance", FieldType.F32));
    }

    static int Record(string path, uint seconds) {
        // The session runs faster than real time, so pushes wait for the recorder.
        using (Description description = Describe())
        using (Recorder recorder = Recorder.Create(path, description, new RecorderOptions { Patient = true }))
        using (RowStream stream = recorder.NewStream()) {
            Play(stream, seconds * 1000000 / Rules.TickUs);
            Console.WriteLine(recorder.Finish().Rows + " records in " + path);
        }
        return 0;
    }

    static void Play(RowStream stream, uint ticks) {
        var random = new Random(7);
        var server = new Server(stream);
        var clients = new Client[Rules.Players];
        var entities = new ushort[] { 0, 1, 2 };
        for (int player = 0; player < Rules.Players; player++) {
            clients[player] = new Client(player, stream, random, server.Bodies);
            stream.PushPresence(player, 1, Rules.TickUs, Presence.Joined);
        }
        for (uint tick = 1; tick <= ticks; tick++) {
            long now = (long)tick * Rules.TickUs;
            for (int player = 0; player < Rules.Players; player++) {
                clients[player].Down.Arrived(tick).ForEach(update => clients[player].Receive(update, now));
                Usercmd[] cmds = clients[player].Frame(tick, now);
                clients[player].Up.Send(tick, cmds);
                uint count = (uint)cmds.Length, ack = clients[player].Newest.Tick;
                var up = new Packet { Number = tick, AtUs = now, Newest = tick, Count = count, Ack = ack, Bytes = 80 };
                stream.PushSent(player, in up);
            }
            server.SetTime(tick, now);
            for (int player = 0; player < Rules.Players; player++) {
                foreach (Usercmd[] cmds in clients[player].Up.Arrived(tick)) {
                    stream.PushReached(player, cmds[cmds.Length - 1].Seq, now);
                    server.Receive(player, cmds);
                }
            }
            server.EndTick();
            for (int player = 0; player < Rules.Players; player++) {
                uint ack = server.Newest[player];
                var bodies = (Body[])server.Bodies.Clone();
                clients[player].Down.Send(tick, new Update { Tick = tick, Ack = ack, Bodies = bodies });
                var down = new Snapshot { Seq = tick, AtUs = now, ServerTimeUs = now, Tick = tick, Ack = ack };
                down.Entities = entities;
                stream.PushSnapshot(player, in down);
            }
        }
    }

    static int Replay(string[] args) {
        using (Playback playback = Playback.Open(args, Game)) {
            Rules.Friction = double.Parse(playback.Setting(FrictionSetting), CultureInfo.InvariantCulture);
            using (Description description = Describe())
            using (RowStream stream = playback.Begin(description))
                Replay(playback, stream, new Server(stream));
            playback.Finish();
        }
        return 0;
    }

    static void Replay(Playback playback, RowStream stream, Server server) {
        var cmd = new Usercmd();
        var state = new State();
        while (playback.Next(stream, out Step step)) {
            server.SetTime(step.Tick, step.AtUs);
            switch (step.Kind) {
            case StepKind.Restore:
                playback.Log.ReadState(step.Row, ref state);
                server.Restore(state.Entity, state.Cells);
                break;
            case StepKind.Input:
                playback.Log.ReadUsercmd(step.Player, step.Row, ref cmd);
                server.Run(step.Player, in cmd);
                break;
            case StepKind.Tick:
                server.EndTick();
                break;
            case StepKind.Join:
            case StepKind.Leave:
                break; // all players are always there
            }
        }
    }

    static int Main(string[] args) {
        try {
            if (args.Length >= 2 && args[0] == "record")
                return Record(args[1], args.Length > 2 ? uint.Parse(args[2]) : 20);
            return Replay(args);
        } catch (HitregException error) {
            Console.Error.WriteLine(Game + ": " + error.Message);
            return error.ExitCode;
        }
    }
}
