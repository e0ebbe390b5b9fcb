using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;
using Hitreg;

/// <summary>The declarations of hitreg.h, compared with the bindings.</summary>
sealed class Header {
    const BindingFlags Any = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Static | BindingFlags.Instance;

    static readonly Dictionary<string, Type> Enums = new Dictionary<string, Type> {
        { "hitreg_code", typeof(Code) }, { "hitreg_type", typeof(FieldType) }, { "hitreg_scope", typeof(Scope) },
        { "hitreg_meaning", typeof(Meaning) }, { "hitreg_table", typeof(Table) },
        { "hitreg_value_kind", typeof(ValueKind) }, { "hitreg_how", typeof(How) },
        { "hitreg_reason", typeof(Reason) }, { "hitreg_presence", typeof(Presence) },
        { "hitreg_step_kind", typeof(StepKind) },
    };

    /// <summary>Structs that the library reads or writes: size and offsets count.</summary>
    static readonly Dictionary<string, Type> Layouts = new Dictionary<string, Type> {
        { "hitreg_field", Internal("NativeField") }, { "hitreg_column", Internal("NativeColumn") },
        { "hitreg_options", typeof(RecorderOptions) }, { "hitreg_written", typeof(Written) },
        { "hitreg_value", typeof(Value) }, { "hitreg_effect", typeof(Effect) },
        { "hitreg_step", typeof(Step) },
    };

    /// <summary>Structs of inline functions: the names of the fields count.</summary>
    static readonly Dictionary<string, Type> Rows = new Dictionary<string, Type> {
        { "hitreg_tick", typeof(Tick) }, { "hitreg_state", typeof(State) }, { "hitreg_executed", typeof(Executed) },
        { "hitreg_damage", typeof(Damage) }, { "hitreg_presence_change", typeof(PresenceChange) },
        { "hitreg_usercmd", typeof(Usercmd) }, { "hitreg_shot", typeof(Shot) }, { "hitreg_packet", typeof(Packet) },
        { "hitreg_snapshot", typeof(Snapshot) }, { "hitreg_arrival", typeof(Arrival) },
    };

    /// <summary>Fields with another name in C#.</summary>
    static readonly Dictionary<string, string> Renamed = new Dictionary<string, string> {
        { "hitreg_tick.tick", "number" }, { "hitreg_value.data", "bits" },
    };

    /// <summary>Inline functions whose names in C# do not follow the rule of `Counterpart`.</summary>
    static readonly Dictionary<string, string> Inline = new Dictionary<string, string> {
        { "hitreg_description_usercmds_as_received", "Description.UsercmdsAsReceived" },
        { "hitreg_table_custom", "Tables.Custom" },
        { "hitreg_none", "Value.Kind" }, { "hitreg_number", "Value.op_Implicit" },
        { "hitreg_real", "Value.op_Implicit" }, { "hitreg_real64", "Value.op_Implicit" },
        { "hitreg_log_find_usercmd", "Log.FindUsercmd" },
        { "hitreg_text", "RowStream.Text" }, { "hitreg_list", "Value.List" },
        { "hitreg_put_64", "Cells.Put" }, { "hitreg_put_f64", "Cells.Put" }, { "hitreg_get_64", "Cells.Get64" },
        { "hitreg_get_f64", "Cells.GetF64" }, { "hitreg_trace_u32", "TraceWriter.Column" },
        { "hitreg_trace_u64", "TraceWriter.Column" }, { "hitreg_trace_i64", "TraceWriter.Column" },
        { "hitreg_trace_f32", "TraceWriter.Column" },
    };

    /// <summary>
    /// What the bindings leave out. These read and write members of C structs by their offsets. In C# that needs
    /// reflection, or addresses in `unsafe` code of the game; <see cref="Cells"/> needs neither.
    /// </summary>
    static readonly string[] Omitted = {
        "hitreg_member", "hitreg_description_struct", "hitreg_push_struct", "hitreg_restore_struct", "hitreg_hash_struct",
        "hitreg_class", "hitreg_description_classes", "hitreg_body", "hitreg_push_tick_with_bodies",
        "hitreg_restore_body",
        // An array of fields or values is as short in C#.
        "hitreg_description_usercmd_numbers", "hitreg_numbers",
    };

    readonly string text;

    public Header(string path) {
        string withComments = File.ReadAllText(path);
        text = Regex.Replace(Regex.Replace(withComments, @"/\*.*?\*/", "", RegexOptions.Singleline), "//.*", "");
    }

    static Type Internal(string name) => typeof(Recorder).Assembly.GetType("Hitreg." + name, true);

    /// <summary>A name without case and underscores.</summary>
    static string Plain(string name) => name.Replace("_", "").ToLowerInvariant();

    static void SameSets(IEnumerable<string> header, IEnumerable<string> bindings, string what) {
        var missing = header.Except(bindings).ToArray();
        var unknown = bindings.Except(header).ToArray();
        Tests.Same(string.Join(", ", missing), "", what + " that the bindings lack");
        Tests.Same(string.Join(", ", unknown), "", what + " that hitreg.h lacks");
    }

    string[] Names(string pattern) => Regex.Matches(text, pattern, RegexOptions.Multiline).Cast<Match>()
        .Select(match => match.Groups[1].Value).ToArray();

    public void CompareFunctions() {
        var imported = Internal("Native").GetMethods(Any)
            .Where(method => (method.Attributes & MethodAttributes.PinvokeImpl) != 0).Select(method => method.Name)
            .ToArray();
        Tests.Holds(imported.Length > 40, "functions are imported");
        SameSets(Names(@"^(?:const )?\w+ \*?(hitreg_\w+)\(").Except(Omitted), imported, "functions");
        foreach (string name in Names(@"^static inline [\w ]+[ \*](hitreg_\w+)\(").Except(Omitted)) {
            string member = Inline.ContainsKey(name) ? Inline[name] : Counterpart(name);
            string[] parts = member.Split('.');
            Tests.Holds(Internal(parts[0]).GetMember(parts[1], Any).Length > 0, name + " is " + member);
        }
        string version = Regex.Match(text, "HITREG_VERSION \"(.*)\"").Groups[1].Value;
        Tests.Same(Library.HeaderVersion, version, "version");
    }

    /// <summary>hitreg_push_usercmd is RowStream.PushUsercmd; hitreg_log_usercmd is Log.ReadUsercmd.</summary>
    static string Counterpart(string function) {
        string[] words = function.Split('_').Skip(1).ToArray();
        string rest = string.Concat(words.Skip(1).Select(word => char.ToUpperInvariant(word[0]) + word.Substring(1)));
        return (words[0] == "push" ? "RowStream.Push" : words[0] == "log" ? "Log.Read" : "Library." + words[0]) + rest;
    }

    public void CompareEnums() {
        var found = Declarations("enum");
        SameSets(found.Select(match => match.Groups[1].Value), Enums.Keys, "enums");
        foreach (Match match in found) {
            string name = match.Groups[1].Value;
            string kinds = name.EndsWith("_kind") ? name.Remove(name.Length - "_kind".Length) : name;
            var prefixes = new[] { kinds.ToUpperInvariant() + "_", "HITREG_ERROR_", "HITREG_" };
            var numbers = Regex.Matches(match.Groups[2].Value, @"(HITREG_\w+) = (\d+)").Cast<Match>();
            var members = numbers.Select(member => {
                string own = member.Groups[1].Value;
                return Plain(own.Substring(prefixes.First(own.StartsWith).Length)) + " = " + member.Groups[2].Value;
            });
            Type type = Enums[name];
            var bound = Enum.GetNames(type).Select(own => Plain(own) + " = " + Convert.ToInt64(Enum.Parse(type, own)));
            SameSets(members, bound.ToArray(), "values of " + name);
        }
    }

    /// <summary>All enums or structs: the name and the members.</summary>
    Match[] Declarations(string kind) =>
        Regex.Matches(text, "typedef " + kind + @" (\w+) \{(.*?)\}", RegexOptions.Singleline).Cast<Match>().ToArray();

    /// <summary>The fields of every struct.</summary>
    Dictionary<string, string[]> Structs() => Declarations("struct").ToDictionary(
        match => match.Groups[1].Value,
        match => Regex.Matches(match.Groups[2].Value, @"(\w+)\s*[,;]").Cast<Match>()
            .Select(field => field.Groups[1].Value).ToArray());

    public string Program() {
        var program = new StringBuilder("#include <stdio.h>\n#include \"hitreg.h\"\nint main(void) {\n");
        foreach (var found in Structs().Where(found => Layouts.ContainsKey(found.Key))) {
            program.AppendFormat("    printf(\"{0} %zu\\n\", sizeof({0}));\n", found.Key);
            foreach (string field in found.Value) {
                program.AppendFormat(
                    "    printf(\"{0}.{1} %zu %zu\\n\", offsetof({0}, {1}), sizeof((({0} *)0)->{1}));\n", found.Key,
                    field);
            }
        }
        return program.Append("    return 0;\n}\n").ToString();
    }

    public void CompareStructs(string[] layout) {
        var structs = Structs();
        SameSets(structs.Keys.Except(Omitted), Layouts.Keys.Concat(Rows.Keys), "structs");
        foreach (var row in Rows) {
            // A list has its count in it, and a hash whether there is one.
            var fields = structs[row.Key].Where(field => !field.EndsWith("_count") && !field.StartsWith("has_"));
            var bound = row.Value.GetFields(Any).Select(field => Plain(field.Name));
            SameSets(fields.Select(field => Own(row.Key, field)), bound, "fields of " + row.Key);
        }
        foreach (var native in Layouts) {
            var bound = native.Value.GetFields(Any).Select(field => Plain(field.Name));
            var missing = structs[native.Key].Select(field => Own(native.Key, field)).Except(bound);
            Tests.Same(string.Join(", ", missing), "", "fields of " + native.Key + " that the bindings lack");
        }
        Tests.Holds(layout.Length > 20, "the layout has lines");
        foreach (string[] words in layout.Select(line => line.Split(' '))) {
            string[] name = words[0].Split('.');
            Type type = Layouts[name[0]];
            if (name.Length == 1) {
                Tests.Same(Marshal.SizeOf(type), int.Parse(words[1]), "size of " + name[0]);
                continue;
            }
            FieldInfo field = type.GetFields(Any).Single(own => Plain(own.Name) == Own(name[0], name[1]));
            Tests.Same((int)Marshal.OffsetOf(type, field.Name), int.Parse(words[1]), "offset of " + words[0]);
            Type plain = field.FieldType.IsEnum ? Enum.GetUnderlyingType(field.FieldType) : field.FieldType;
            Tests.Same(Marshal.SizeOf(plain), int.Parse(words[2]), "size of " + words[0]);
        }
    }

    static string Own(string type, string field) =>
        Renamed.ContainsKey(type + "." + field) ? Renamed[type + "." + field] : Plain(field);
}
