package trace

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Env reads the environment, as os.Getenv does.
type Env func(name string) string

// of reads a variable of exporters, of which there is one for traces and one
// for all signals.
func (env Env) of(what string) (name, value string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if name = prefix + what; env(name) != "" {
			return name, strings.TrimSpace(env(name))
		}
	}
	return name, ""
}

// wanted reports whether spans are to be exported, and refuses what would make
// an export fail in silence. No refusal holds a value that may be a secret.
func (env Env) wanted() (bool, error) {
	name, endpoint := env.of("ENDPOINT")
	exporter := env("OTEL_TRACES_EXPORTER")
	if endpoint == "" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none, not %q", exporter)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false, errors.New(name + " must be a web address such as http://localhost:4318")
	}
	if name, p := env.of("PROTOCOL"); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("%s must be http/protobuf, not %q: that is the only protocol there is", name, p)
	}
	if name, list := env.of("HEADERS"); list != "" {
		for _, one := range strings.Split(list, ",") {
			key, value, ok := strings.Cut(one, "=")
			if _, err := url.PathUnescape(value); !ok || strings.TrimSpace(key) == "" || err != nil {
				return false, errors.New(name + " must be a list of name=value, with commas between them and values percent-encoded")
			}
		}
	}
	return true, nil
}

// sampler is OTEL_TRACES_SAMPLER with its argument. Only what a caller samples
// comes to it at all.
func (env Env) sampler() (sdk.Sampler, error) {
	ratio := func() (sdk.Sampler, error) {
		text := env("OTEL_TRACES_SAMPLER_ARG")
		if text == "" {
			return sdk.AlwaysSample(), nil
		}
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not %q", text)
		}
		return sdk.TraceIDRatioBased(share), nil
	}
	switch name := env("OTEL_TRACES_SAMPLER"); name {
	case "", "parentbased_always_on", "parentbased_always_off", "always_on":
		return sdk.AlwaysSample(), nil // there always is a parent, and it is sampled
	case "parentbased_traceidratio":
		_, err := ratio()
		return sdk.AlwaysSample(), err
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		return ratio()
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio, "+
			"parentbased_always_on, parentbased_always_off or parentbased_traceidratio, not %q", name)
	}
}
