package plugin

import (
	"github.com/reprisehq/reprise/internal/fluentconf"
)

// ServiceSection declares what [SERVICE] may say.
func ServiceSection() *Plugin {
	const (
		durable    = "chunks are kept in the store of the server, which checks them"
		supervisor = "start it with systemd, Docker or the like"
	)
	return &Plugin{Kind: fluentconf.Service, Name: "service", What: "what holds for the whole pipeline", Properties: []Property{
		span("flush", "1", "how long a chunk is filled before it is sent").from(0.001, 1e6),
		whole("grace", "5", -1, 1e6, "seconds that a stop waits for what is being sent; -1 is without end"),
		whole("scheduler.base", "5", 1, 1e6, "the shortest wait before a retry, in seconds"),
		whole("scheduler.cap", "2000", 1, 1e6, "the longest wait before a retry, in seconds"),
		word("log_level", "info", "what is logged", logLevels...),
		text("log_file", "", "file of the log").idle("the log goes to standard error; send that into a file"),
		onOff("daemon", "off", "go into the background").idle(supervisor),
		text("parsers_file", "", "file with parsers").many(),
		text("plugins_file", "", "file with plugins to load").many().idle("no plugins are loaded from files; a section that needs one is refused"),
		text("streams_file", "", "file with tasks of the stream processor").many().gone("there is no stream processor; send the records to one by output kafka"),
		onOff("sp.convert_from_str_to_num", "on", "numbers in the stream processor").idle("there is no stream processor"),
		onOff("http_server", "off", "serve /api/v1 at a port of its own"),
		text("http_listen", "0.0.0.0", "its address"),
		whole("http_port", "2020", 0, 65535, "its port"),
		onOff("health_check", "off", "serve /api/v1/health"),
		whole("hc_errors_count", "5", 0, 1e9, "errors within hc_period that are still healthy"),
		whole("hc_retry_failure_count", "5", 0, 1e9, "chunks given up within hc_period that are still healthy"),
		whole("hc_period", "60", 1, 1e6, "seconds that are looked at"),
		onOff("hot_reload", "off", "read the configuration again on SIGHUP and POST /api/v2/reload"),
		onOff("hot_reload.ensure_thread_safety", "on", "wait for what is being sent").idle("a reload ends in bounded time, and what is being sent is not lost"),
		span("hot_reload.timeout", "0", "time after which a reload is broken off").idle("a reload ends in bounded time"),
		text("storage.path", "", "folder in which reprise pipeline keeps everything, by default ./reprise-root; with reprise serve, root_dir of the server holds"),
		word("storage.sync", "normal", "how chunks are written", "normal", "full").idle("what is taken is on disk; see sync of the server"),
		onOff("storage.checksum", "off", "check chunks").idle(durable),
		whole("storage.max_chunks_up", "128", 0, 1e9, "chunks in memory").idle("chunks that wait are on disk"),
		size("storage.backlog.mem_limit", "100M", "memory for chunks of an earlier run").idle("they are read when they are sent"),
		onOff("storage.backlog.flush_on_shutdown", "off", "send chunks of an earlier run at the stop").idle("they are kept"),
		onOff("storage.metrics", "on", "serve /api/v1/storage"),
		onOff("storage.delete_irrecoverable_chunks", "off", "delete damaged chunks").idle(durable),
		onOff("storage.trim_files", "off", "make files smaller").idle(durable),
		word("storage.type", "", "where records of inputs wait that do not say it themselves, with storage.inherit", "filesystem", "memory", "memrb"),
		onOff("storage.inherit", "off", "let storage.type hold for inputs"),
		onOff("storage.keep.rejected", "off", "keep chunks that were given up").idle("they are always kept, in the dead set"),
		text("storage.rejected.path", "rejected", "folder for them").idle("they are in the dead set"),
		size("storage.rejected.limit", "0", "bytes of them").idle("they are in the dead set"),
		size("multiline_buffer_limit", "2M", "the longest record that is put together from lines"),
		onOff("json.convert_nan_to_null", "off", "write null for numbers that JSON does not have"),
		onOff("json.escape_unicode", "on", "write \\u for what is not ASCII"),
		word("dns.mode", "", "how the name server is asked", "udp", "tcp").idle(ownResolver),
		word("dns.resolver", "", "who asks", "legacy", "async").idle(ownResolver),
		onOff("dns.prefer_ipv4", "off", "addresses of version 4 first").idle(ownResolver),
		onOff("dns.prefer_ipv6", "off", "addresses of version 6 first").idle(ownResolver),
		text("net.http_proxy", "", "proxy of all outputs").gone("set HTTP_PROXY in the environment, or Proxy in an output http"),
		text("net.no_proxy", "", "hosts without it").gone("set NO_PROXY in the environment"),
		size("coro_stack_size", "24576", "stack of a coroutine").idle("there are no coroutines"),
		onOff("enable_chunk_trace", "off", "trace chunks").idle("an output stdout with the same Match shows records as they pass"),
		onOff("security.fips_mode", "off", "use only what FIPS 140 allows").gone("start the server with GODEBUG=fips140=only in the environment"),
		whole("windows.maxstdio", "512", 1, 1e6, "files open at once").idle("the system decides"),
	}}
}

// ReadService reads all service sections as one; of two values the last one counts. Keys that
// are not known are a notice.
func ReadService(sections []*fluentconf.Section, r *fluentconf.Report) *Values {
	rd := &reader{Report: r, plugin: ServiceSection(), what: "service", lenient: true}
	var (
		entries []fluentconf.Entry
		at      fluentconf.Place
	)
	for _, s := range sections {
		if s.Kind == fluentconf.Service {
			at = s.At
			entries = append(entries, s.Entries...)
			for _, inner := range s.Inner {
				r.Notice(inner.At, "%s has no effect here", inner.Kind)
			}
		}
	}
	v := rd.read(at, entries)
	if base, most := v.Int("scheduler.base"), v.Int("scheduler.cap"); most < base {
		r.Problem(v.Place("scheduler.cap"), "scheduler.cap is %d and scheduler.base is %d; the longest wait cannot be shorter than the shortest one", most, base)
	}
	return v
}
