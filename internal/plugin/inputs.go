package plugin

// Inputs declares those that are here.
func Inputs() []Plugin {
	return []Plugin{dummy(), tail(), stdin(), httpInput(), tcp(), forwardInput(), syslog(), kafkaInput()}
}

func dummy() Plugin {
	return input("dummy", "makes records, to try a configuration", []Property{
		text("dummy", `{"message":"dummy"}`, "the record, as JSON"),
		text("metadata", "{}", "its metadata, as JSON"),
		whole("rate", "1", 1, 1e6, "records a second"),
		whole("interval_sec", "0", 0, 1e9, "seconds between records; 0 leaves it to rate"),
		whole("interval_nsec", "0", 0, 999999999, "nanoseconds more between records"),
		whole("samples", "0", 0, 1e12, "how many records; 0 is no limit"),
		whole("copies", "1", 1, 1e6, "how many times each"),
		whole("start_time_sec", "-1", -1, 1e12, "time of the first record; -1 is now"),
		whole("start_time_nsec", "-1", -1, 999999999, "nanoseconds of it"),
		onOff("fixed_timestamp", "off", "the same time for all"),
		onOff("flush_on_startup", "off", "the first record at once"),
	})
}

func tail() Plugin {
	const dockerMode = "it belongs to docker_mode; use multiline.parser docker"
	const readers = "files are read as fast as the outputs take them"
	p := input("tail", "reads lines of files as they grow", []Property{
		list("path", "", "the files: names or patterns, with commas between them").required(),
		list("exclude_path", "", "patterns of files to leave out"),
		text("key", "log", "key of the line in a record that no parser made"),
		onOff("read_from_head", "off", "read files that are there at the first start from their beginning"),
		onOff("read_newly_discovered_files_from_head", "on", "read files that come later from their beginning"),
		span("refresh_interval", "60", "how often new files are looked for"),
		span("rotate_wait", "5", "how long a file is read on after it was renamed"),
		span("ignore_older", "0", "leave out files that have not changed for so long; 0 leaves none out"),
		onOff("ignore_active_older_files", "off", "also those that are being read"),
		size("buffer_chunk_size", "32768", "first size of the buffer of a file"),
		size("buffer_max_size", "32768", "its last size, and with that the longest line"),
		onOff("skip_long_lines", "off", "leave longer lines out instead of leaving the file"),
		onOff("truncate_long_lines", "off", "cut longer lines"),
		onOff("skip_empty_lines", "off", "leave empty lines out"),
		onOff("exit_on_eof", "off", "end when all files are read"),
		text("path_key", "", "key under which the name of the file is added"),
		text("offset_key", "", "key under which the position in the file is added"),
		text("parser", "", "parser that makes records of lines"),
		pattern("tag_regex", "pattern on the name of the file; its groups can be used in the tag"),
		list("multiline.parser", "", "parsers that put lines together, such as docker, cri or java").many(),
		onOff("multiline", "off", "put lines together by parser_firstline").gone("name a [MULTILINE_PARSER] by multiline.parser instead"),
		span("multiline_flush", "4", "how long lines wait for more"),
		text("parser_firstline", "", "parser that knows the first line").idle("it belongs to multiline; use multiline.parser"),
		text("parser_", "", "parsers for the lines behind it: parser_1, parser_2").beginning(),
		onOff("docker_mode", "off", "put lines together that Docker split").gone("write multiline.parser docker instead"),
		span("docker_mode_flush", "4", "how long such lines wait for more").idle(dockerMode),
		text("docker_mode_parser", "", "parser that knows their first line").idle(dockerMode),
		text("db", "", "file in which positions are kept").idle(positions),
		word("db.sync", "normal", "how it is written", "extra", "full", "normal", "off").idle(positions),
		onOff("db.locking", "off", "no other process opens it").idle(positions),
		text("db.journal_mode", "WAL", "how it is written").idle(positions),
		onOff("db.compare_filename", "off", "a file is known by its name too").idle(positions),
		onOff("inotify_watcher", "on", "let the system tell of changes"),
		onOff("file_cache_advise", "on", "do not keep files in the cache of the system").idle("the system decides"),
		span("watcher_interval", "2s", "how often files are looked at").idle(readers),
		span("progress_check_interval", "2s", "how often files are looked at").idle(readers),
		whole("progress_check_interval_nsec", "0", 0, 999999999, "nanoseconds of it").idle(readers),
		size("static_batch_size", "50M", "bytes at once of files that are there at the start").idle(readers),
		size("event_batch_size", "50M", "bytes at once of files that grow").idle(readers),
		text("unicode.encoding", "", "encoding of the files").gone("files must be UTF-8; convert them with iconv before"),
		text("generic.encoding", "", "encoding of the files").gone("files must be UTF-8; convert them with iconv before"),
	})
	return p
}

func stdin() Plugin {
	return input("stdin", "reads what is piped into the server", []Property{
		text("parser", "", "parser that makes records of lines; by default they are JSON"),
		size("buffer_size", "16000", "the longest line").from(16000, 1e9),
	})
}

func httpInput() Plugin {
	return input("http", "takes records by HTTP", listening("9880"), []Property{
		text("tag_key", "", "key of the record whose value is the tag"),
		word("successful_response_code", "201", "status of the answer", "200", "201", "204"),
		parts("success_header", 2, 2, "header of the answer: NAME VALUE"),
		onOff("add_remote_addr", "off", "add the address of the sender"),
		text("remote_addr_key", "REMOTE_ADDR", "key of that address"),
		onOff("enable_health_endpoint", "off", "answer GET /health"),
		onOff("http2", "on", "speak HTTP/2 too"),
		size("buffer_max_size", "4M", "the largest body"),
		size("buffer_chunk_size", "512K", "first size of the buffer of a body").idle("buffers grow as they must"),
		whole("http_server.workers", "1", 1, 1000, "threads").idle(ownRoutine),
		span("http_server.idle_timeout", "10s", "how long a connection may be quiet"),
		whole("http_server.max_connections", "0", 0, 1e6, "connections at once; 0 is no limit"),
		whole("http_server.ingress_queue_event_limit", "8192", 0, 1e9, "requests that wait").idle("a request waits until its records are stored"),
		size("http_server.ingress_queue_byte_limit", "256M", "bytes that wait").idle("a request waits until its records are stored"),
		text("oauth2.", "", "check of tokens").beginning().gone("tokens are not checked; let a proxy do that, or use tls.verify with certificates of clients"),
	})
}

func tcp() Plugin {
	return input("tcp", "takes lines or JSON by TCP", listening("5170"), []Property{
		word("format", "json", "JSON, or text that the separator splits", "json", "none"),
		text("separator", `\n`, "what stands between two texts"),
		text("parser", "", "parser that makes records of texts"),
		whole("chunk_size", "32", 1, 1e6, "first size of the buffer of a connection, in units of 1024 bytes"),
		whole("buffer_size", "", 1, 1e6, "its last size, in the same units; by default chunk_size"),
		text("source_address_key", "", "key under which the address of the sender is added"),
		whole("workers", "1", 1, 1000, "threads").idle(ownRoutine),
	})
}

func forwardInput() Plugin {
	return input("forward", "takes records from Fluent Bit and Fluentd", listening("24224"), []Property{
		text("tag_prefix", "", "what is put before the tags"),
		text("shared_key", "", "secret that the sender must know"),
		onOff("empty_shared_key", "off", "speak the protocol with a secret that is empty"),
		text("self_hostname", "localhost", "name of this host in the protocol"),
		parts("security.users", 2, 2, "a user and the password, once for each"),
		text("unix_path", "", "path of a socket to listen at, instead of a port"),
		text("unix_perm", "", "its permissions, such as 0644"),
		size("buffer_chunk_size", "1024000", "first size of the buffer of a connection").idle("buffers grow as they must"),
		size("buffer_max_size", "6144000", "the largest message"),
		whole("workers", "1", 1, 1000, "threads").idle(ownRoutine),
	})
}

func syslog() Plugin {
	return input("syslog", "takes messages of syslog", listening("5140"), []Property{
		word("mode", "unix_udp", "how they come", "unix_udp", "unix_tcp", "udp", "tcp"),
		text("path", "", "path of the socket, for unix_udp and unix_tcp"),
		text("unix_perm", "0644", "its permissions"),
		text("parser", "", "parser of the messages; by default syslog-rfc5424 for udp and tcp, else syslog-rfc3164-local"),
		word("format", "newline", "what ends a message of tcp", "newline", "octet_counting"),
		size("buffer_chunk_size", "32768", "first size of the buffer of a connection"),
		size("buffer_max_size", "", "its last size; by default buffer_chunk_size"),
		size("receive_buffer_size", "0", "buffer of the system for udp; 0 leaves it as it is"),
		text("raw_message_key", "", "key under which the whole message is added"),
		text("source_address_key", "", "key under which the address of the sender is added"),
		whole("workers", "1", 1, 1000, "threads").idle(ownRoutine),
	})
}

func kafkaInput() Plugin {
	return input("kafka", "reads topics of Kafka", []Property{
		list("brokers", "", "host:port of brokers, with commas between them").required(),
		list("topics", "", "topics, with commas between them").required(),
		text("client_id", "", "name of this client"),
		text("group_id", "", "group of consumers that share the topics"),
		word("format", "none", "what a message is: text, or JSON", "none", "json"),
		size("buffer_max_size", "4M", "bytes that are fetched at once"),
		whole("poll_ms", "500", 1, 1e6, "milliseconds to wait for messages").idle("messages are taken as they come"),
		whole("poll_timeout_ms", "1", 1, 1e6, "milliseconds to wait for one message").idle("messages are taken as they come"),
		onOff("enable_auto_commit", "off", "commit positions by time").idle("a position is committed when its records are stored"),
		whole("threads", "1", 1, 1000, "threads").idle(ownRoutine),
		text("rdkafka.", "", "settings of librdkafka").beginning(),
		text("aws_msk_iam", "", "sign in with AWS").beginning().gone("use SASL/SCRAM or certificates, by rdkafka.sasl.* or rdkafka.ssl.*"),
	})
}
