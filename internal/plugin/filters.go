package plugin

// Filters declares those that are here.
func Filters() []Plugin {
	return []Plugin{
		filter("grep", "keeps or drops records by patterns",
			parts(Parts, "regex", 2, 2, "KEY PATTERN: keep records in which it fits").pattern(),
			parts(Parts, "exclude", 2, 2, "KEY PATTERN: drop records in which it fits").pattern(),
			word("logical_op", "legacy", "whether all or one must fit; legacy is one rule after the other", "legacy", "and", "or"),
		),
		filter("modify", "changes keys by rules and conditions, in their order",
			parts(Quoted, "set", 2, 2, "KEY VALUE: add, or overwrite"),
			parts(Quoted, "add", 2, 2, "KEY VALUE: add if it is not there").also("add_if_not_present"),
			parts(Quoted, "remove", 1, 1, "KEY"),
			parts(Quoted, "remove_wildcard", 1, 1, "BEGINNING: remove all keys that begin so"),
			parts(Quoted, "remove_regex", 1, 1, "PATTERN: remove all keys that it fits").pattern(),
			parts(Quoted, "rename", 2, 2, "KEY NEW, unless NEW is there"),
			parts(Quoted, "hard_rename", 2, 2, "KEY NEW, also over one that is there"),
			parts(Quoted, "copy", 2, 2, "KEY NEW, unless NEW is there"),
			parts(Quoted, "hard_copy", 2, 2, "KEY NEW, also over one that is there"),
			parts(Quoted, "move_to_start", 1, 1, "KEY; * at its end stands for any text"),
			parts(Quoted, "move_to_end", 1, 1, "KEY; * at its end stands for any text"),
			parts(Quoted, "condition", 2, 3, "what must hold for the rules: a word such as Key_exists, a key, and a value for some"),
		),
		filter("record_modifier", "adds keys, and keeps or removes some",
			parts(Parts, "record", 2, 2, "KEY VALUE: add"),
			text("remove_key", "", "key to remove").many(),
			text("allowlist_key", "", "key to keep; all others are removed").many().also("whitelist_key"),
			text("uuid_key", "", "key under which a new id is added"),
		),
		filter("parser", "makes fields of the text in a key",
			text("key_name", "", "key with the text").required(),
			text("parser", "", "parser of the text; of several the first that fits").many().required(),
			onOff("preserve_key", "off", "keep the key"),
			onOff("reserve_data", "off", "keep the other keys"),
			onOff("unescape_key", "off", "take escapes out of the text first").idle("parsers do that by decoders: Decode_Field in [PARSER]"),
		),
	}
}
