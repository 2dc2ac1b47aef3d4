# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Turns contract/types.tsv into C that only compiles if a header agrees with it."""

SIGNEDNESS = {"signed int": "<", "unsigned int": ">"}


def newest(rows):
    """The last size of a structure that grew; the header of today declares that one."""
    last = {}
    for row in rows:
        last[row["kind"], row["name"], row["member"]] = row
    return list(last.values())


def hold(condition):
    escaped = condition.replace('"', r"\"")
    return f'_Static_assert({condition}, "{escaped}");'


def of_macro(row):
    name, value = row["name"], row["value"]
    lines = [f"#ifndef {name}\n#error {name} is missing\n#endif"]
    if row["size"]:
        lines += [hold(f"({name}) == ({value})"), hold(f"sizeof({name}) == {row['size']}"),
                  hold(f"({name}) == ({row['type_or_expression']})")]
    elif value == "NULL":
        lines.append(f"const void *const is_null_{name} = {name};")
        lines.append(hold(f"__builtin_types_compatible_p(__typeof__{row['type_or_expression']}, "
                          f"__typeof__({name}))"))
    return lines


def of_enum(row):
    kind = f"enum {row['name']}"
    return [hold(f"sizeof({kind}) == {row['size']}"),
            hold(f"({kind})-1 {SIGNEDNESS[row['type_or_expression']]} 0")]


def of_struct(row):
    kind, align = f"struct {row['name']}", row["type_or_expression"].split()[1]
    return [hold(f"sizeof({kind}) == {row['size']}"), hold(f"_Alignof({kind}) == {align}")]


def of_member(row):
    kind, member = f"struct {row['name']}", row["member"]
    return [hold(f"__builtin_offsetof({kind}, {member}) == {row['offset']}"),
            hold(f"sizeof((({kind} *)0)->{member}) == {row['size']}"),
            hold(f"__builtin_types_compatible_p(__typeof__((({kind} *)0)->{member}), "
                 f"{row['type_or_expression']})")]


def of_typedef(row):
    again = row["type_or_expression"].replace("(", f"again_{row['name']}(", 1)
    return [f"typedef {again};",
            hold(f"__builtin_types_compatible_p(again_{row['name']}, {row['name']})")]


def of_opaque(row):
    # Defining it here is an error if the header defines it too.
    return [f"struct {row['name']} {{ int opaque; }};"]


MAKERS = {
    "macro": of_macro, "enum": of_enum, "struct": of_struct, "member": of_member,
    "typedef": of_typedef, "opaque struct": of_opaque,
    "enumerator": lambda row: [hold(f"{row['member']} == {row['value']}"),
                               hold("__builtin_types_compatible_p(__typeof__("
                                    f"{row['member']}), int)")],
}


def statements(rows):
    lines = []
    for row in newest(rows):
        if row["kind"] in MAKERS:
            lines += MAKERS[row["kind"]](row)
    return lines
