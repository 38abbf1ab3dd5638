package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/reprisehq/reprise/bench/measure"
	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := execute(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{"help"}
	}
	switch args[0] {
	case "run":
		return runCommand(ctx, args[1:])
	case "smoke":
		return smokeCommand(ctx, args[1:])
	case "report":
		return reportCommand(args[1:])
	case "list":
		list()
		return nil
	default:
		return fmt.Errorf("commands are run, report, smoke and list; there is no %q", args[0])
	}
}

func list() {
	fmt.Println("systems:")
	for _, s := range system.All() {
		fmt.Printf("  %-26s %s  %s\n", s.Name, s.Class, s.Durability)
	}
	fmt.Println("phases:")
	for _, name := range measure.PhaseNames() {
		fmt.Printf("  %-26s %s\n", name, measure.PhaseAbout(name))
	}
}

func reportCommand(args []string) error {
	flags := flag.NewFlagSet("bench report", flag.ContinueOnError)
	in := flags.String("in", defaultResults, "saved results")
	document := flags.String("doc", defaultDocument, "document to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file, err := result.Load(*in)
	if err != nil {
		return err
	}
	return writeDocument(file, *document, *in)
}

// writeDocument replaces the document at path by one made of saved results.
func writeDocument(file *result.File, path, source string) error {
	var text bytes.Buffer
	if err := file.WriteDocument(&text, filepath.Base(source), measure.PhaseAbout); err != nil {
		return err
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return err
	}
	progress("wrote %s", path)
	return nil
}
