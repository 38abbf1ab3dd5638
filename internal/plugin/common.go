package plugin

import "slices"

// What all plugins of a kind have. The notes on what has no effect are what is told.

const (
	oneLogLevel = "one log level holds for the whole server; set Log_Level in [SERVICE]"
	ownRoutine  = "every input and output works beside the others anyway"
	ownResolver = "names are found by the resolver of the system"
	positions   = "positions in files are always kept, in the store of the server"
	brokerWaits = "what has not been taken by the target waits in the store, not in memory"
)

var logLevels = []string{"off", "error", "warn", "warning", "info", "debug", "trace"}

// both are the properties of all plugins.
func both() []Property {
	return []Property{
		text("alias", "", "name of this one in metrics, in logs and for the dead set"),
		word("log_level", "", "what is logged of it", logLevels...).idle(oneLogLevel),
		span("log_suppress_interval", "0", "leave out log lines that come again within it").idle("lines that come again are not suppressed"),
	}
}

// input puts the properties of all inputs behind those of one.
func input(name, what string, properties ...[]Property) Plugin {
	return Plugin{Kind: "input", Name: name, What: what, Properties: slices.Concat(slices.Concat(properties...), []Property{
		text("tag", "", "tag of the records; by default the name of the input with its number"),
		size("mem_buf_limit", "0", "bytes that wait in memory before the input pauses; 0 is no limit"),
		word("storage.type", "filesystem", "memory lets mem_buf_limit pause the input; records are on disk in any case", "filesystem", "memory", "memrb"),
		onOff("storage.pause_on_chunks_overlimit", "off", "pause when too many chunks wait"),
		onOff("routable", "on", "off drops the records before they reach an output"),
		onOff("threaded", "off", "run in a thread of its own").idle(ownRoutine),
		whole("thread.ring_buffer.capacity", "1024", 1, 1e9, "size of a queue between threads").idle(ownRoutine),
		whole("thread.ring_buffer.window", "5", 1, 100, "when it is emptied, in percent").idle(ownRoutine),
	}, both())}
}

func filter(name, what string, properties ...Property) Plugin {
	return Plugin{Kind: "filter", Name: name, What: what, Properties: slices.Concat(properties, matching(), both())}
}

// output puts the properties of all outputs behind those of one.
func output(name, what string, properties ...[]Property) Plugin {
	return Plugin{Kind: "output", Name: name, What: what, Properties: slices.Concat(slices.Concat(properties...), matching(), []Property{
		prop(Limit, "retry_limit", "1", "how many retries follow the first attempt: a number, no_limits or no_retries"),
		size("storage.total_limit_size", "off", "bytes that may wait for this output; the oldest chunks are dropped first, and counted"),
		whole("workers", "0", 0, 1000, "how many chunks are sent at once; 0 leaves it to the output"),
		onOff("no_multiplex", "off", "send one chunk after the other"),
	}, both())}
}

func matching() []Property {
	return []Property{
		text("match", "", "tags of the records that it gets; * stands for any text"),
		pattern("match_regex", "the same as a pattern, from the beginning of the tag"),
	}
}

// listening is what an input has that others connect to.
func listening(port string) []Property {
	return slices.Concat([]Property{
		text("listen", "0.0.0.0", "address to listen at").also("host"),
		whole("port", port, 0, 65535, "port to listen at"),
		whole("net.backlog", "128", 1, 65535, "connections that wait to be accepted").idle("the system's own length holds"),
		onOff("net.share_port", "off", "several processes at one port").idle("one process listens"),
		onOff("net.keepalive", "on", "let a connection be used again").idle("connections stay open as long as the sender keeps them"),
		span("net.accept_timeout", "10s", "time for a connection to be accepted, TLS included"),
		onOff("net.accept_timeout_log_error", "on", "log when it is over").idle("it is logged"),
		span("net.io_timeout", "0s", "time without a byte after which a connection is closed; 0 is no limit"),
	}, tls(
		onOff("tls.verify", "off", "ask for a certificate of the client and check it"),
		onOff("tls.verify_hostname", "off", "check its name").idle("clients have no names to check"),
	))
}

// connecting is what an output has that connects to a host.
func connecting(host, port string) []Property {
	return slices.Concat([]Property{
		text("host", host, "host to send to"),
		whole("port", port, 1, 65535, "port to send to"),
		onOff("ipv6", "off", "use version 6 of the internet protocol only").idle("both versions are tried"),
		span("net.connect_timeout", "10s", "time to connect, TLS included"),
		onOff("net.connect_timeout_log_error", "on", "log it as an error").idle("what a target did is with the retry"),
		span("net.io_timeout", "0s", "time without a byte after which a connection is given up; 0 is no limit"),
		onOff("net.keepalive", "on", "use connections again"),
		span("net.keepalive_idle_timeout", "30s", "time after which an unused connection is closed"),
		whole("net.keepalive_max_recycle", "2000", 0, 1e9, "how often a connection is used; 0 is no limit"),
		whole("net.max_worker_connections", "0", 0, 1e6, "connections at once; 0 is no limit"),
		text("net.source_address", "", "address to connect from"),
		onOff("net.proxy_env_ignore", "off", "do not look at HTTP_PROXY and NO_PROXY of the environment"),
		word("net.dns.mode", "", "how the name server is asked", "udp", "tcp").idle(ownResolver),
		word("net.dns.resolver", "", "who asks", "legacy", "async").idle(ownResolver),
		onOff("net.dns.prefer_ipv4", "off", "addresses of version 4 first").idle(ownResolver),
		onOff("net.dns.prefer_ipv6", "off", "addresses of version 6 first").idle(ownResolver),
		onOff("net.tcp_keepalive", "off", "probes on a quiet connection").idle("they are always on"),
		whole("net.tcp_keepalive_time", "-1", -1, 1e6, "seconds before the first probe").idle("the first one comes after 15 s"),
		whole("net.tcp_keepalive_interval", "-1", -1, 1e6, "seconds between probes").idle("they come every 15 s"),
		whole("net.tcp_keepalive_probes", "-1", -1, 1e6, "probes without an answer").idle("the system decides"),
	}, tls(
		onOff("tls.verify", "on", "check the certificate of the target"),
		onOff("tls.verify_hostname", "on", "check that it is for this host; off by default in Fluent Bit"),
	))
}

func tls(checks ...Property) []Property {
	const windows = "certificates are files here; name them with tls.ca_file, tls.crt_file and tls.key_file"
	return append(checks, []Property{
		onOff("tls", "off", "use TLS"),
		whole("tls.debug", "1", 0, 4, "what is logged of TLS").idle("what failed is told with the error"),
		text("tls.ca_file", "", "file with the certificates to trust"),
		text("tls.ca_path", "", "folder with the certificates to trust").gone("put them into one file and name it with tls.ca_file"),
		text("tls.crt_file", "", "file with the own certificate"),
		text("tls.key_file", "", "file with its key"),
		text("tls.key_passwd", "", "password of the key").gone("take the password off: openssl pkey -in KEY -out NEW"),
		text("tls.vhost", "", "name of the host in the certificate"),
		word("tls.min_version", "TLSv1.2", "lowest version of TLS", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
		word("tls.max_version", "TLSv1.3", "highest version of TLS", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
		text("tls.ciphers", "", "ciphers").gone("safe ones are chosen; leave it out"),
		text("tls.windows.certstore_name", "", "store of certificates").gone(windows),
		onOff("tls.windows.use_enterprise_store", "off", "store of certificates").gone(windows),
	}...)
}

// asJSON is how an output writes the time of a record into JSON.
func asJSON() []Property {
	return []Property{
		text("json_date_key", "date", "key of the time in each record; false leaves it out"),
		word("json_date_format", "double", "how the time is written", "double", "epoch", "epoch_ms", "iso8601", "java_sql_timestamp"),
	}
}

func gelf() []Property {
	return []Property{
		text("gelf_timestamp_key", "", "key with the time, for GELF"),
		text("gelf_host_key", "", "key with the host, for GELF"),
		text("gelf_short_message_key", "", "key with the short message, for GELF"),
		text("gelf_full_message_key", "", "key with the full message, for GELF"),
		text("gelf_level_key", "", "key with the level, for GELF"),
	}
}

// aws is refused: requests are not signed here.
func aws() []Property {
	const why = "requests are not signed for AWS; send to a proxy that signs them, such as aws-sigv4-proxy"
	return []Property{
		onOff("aws_auth", "off", "sign requests").gone(why),
		text("aws_", "", "how they are signed").beginning().gone(why),
	}
}

func oauth2() Property {
	return text("oauth2.", "", "OAuth2").beginning().gone("tokens are not fetched; give one with Header Authorization Bearer TOKEN")
}

func upstream() Property {
	return text("upstream", "", "file with several targets").gone("write an output for each target, or name a load balancer as the host")
}
