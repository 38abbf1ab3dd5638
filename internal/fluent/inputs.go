package fluent

import (
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/local"
	"github.com/reprisehq/reprise/internal/connect/tail"
	"github.com/reprisehq/reprise/internal/plugin"
)

// inputs are what reads for each input that is declared.
var inputs = map[string]func(l *loader, v *plugin.Values, tag string) (connect.Source, error){
	"dummy": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		return sourceOf(local.NewDummy(local.DummyOptions{
			Tag: tag, Dummy: v.Text("dummy"), Metadata: v.Text("metadata"), Rate: int(v.Int("rate")),
			IntervalSec: int(v.Int("interval_sec")), IntervalNsec: int(v.Int("interval_nsec")),
			Samples: int(v.Int("samples")), Copies: int(v.Int("copies")), FixedTimestamp: v.Flag("fixed_timestamp"),
			StartTimeSec: int(v.Int("start_time_sec")), StartTimeNsec: int(v.Int("start_time_nsec")),
			FlushOnStartup: v.Flag("flush_on_startup"), Now: l.Now,
		}))
	},
	"stdin": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		return sourceOf(local.NewStdin(local.StdinOptions{
			Tag: tag, BufferSize: int(v.Size("buffer_size")), Lines: l.linesOf(v, "log"), In: l.Stdin, Now: l.Now, Log: l.Log,
		}))
	},
	"tail": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		return sourceOf(tail.New(tail.Options{
			Path: v.List("path"), ExcludePath: v.List("exclude_path"), Tag: tag, TagRegex: v.Text("tag_regex"),
			Key: v.Text("key"), PathKey: v.Text("path_key"), OffsetKey: v.Text("offset_key"),
			ReadFromHead: v.Flag("read_from_head"), SkipNewContent: !v.Flag("read_newly_discovered_files_from_head"),
			RefreshInterval: v.Span("refresh_interval"), RotateWait: v.Span("rotate_wait"), IgnoreOlder: v.Span("ignore_older"),
			BufferChunkSize: int(v.Size("buffer_chunk_size")), BufferMaxSize: int(v.Size("buffer_max_size")),
			SkipLongLines: v.Flag("skip_long_lines"), TruncateLongLines: v.Flag("truncate_long_lines"),
			SkipEmptyLines: v.Flag("skip_empty_lines"), ExitOnEOF: v.Flag("exit_on_eof"),
			Lines: l.linesOf(v, v.Text("key")), MultilineFlush: v.Span("multiline_flush"),
			Now: l.Now, Log: l.Log,
		}))
	},
}
