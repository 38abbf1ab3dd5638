package plugin

import (
	"slices"
	"strings"
)

// Elsewhere is plugins of Fluent Bit that are not here, and what to do instead.
type Elsewhere struct {
	Kind    string
	Names   []string
	Instead string
}

// NotHere lists all of them.
func NotHere() []Elsewhere {
	var all []Elsewhere
	for _, row := range [][3]string{
		{"input", "cpu mem disk netif thermal proc docker podman_metrics gpu_metrics", "collect numbers of the machine with Telegraf and let its output http send them to input http"},
		{"input", "node_exporter_metrics process_exporter_metrics windows_exporter_metrics nginx_metrics fluentbit_metrics", "metrics are not carried here, only records; let Prometheus read the exporter itself"},
		{"input", "prometheus_scrape prometheus_remote_write prometheus_textfile statsd collectd", "metrics are not carried here, only records; send them to Prometheus or Telegraf"},
		{"input", "docker_events", "pipe docker events --format '{{json .}}' into input stdin"},
		{"input", "exec exec_wasi", "run the command yourself and pipe what it prints into input stdin, or into a file for input tail"},
		{"input", "head", "read the file with input tail and Read_from_Head on"},
		{"input", "kmsg", "run dmesg --follow and pipe it into input stdin"},
		{"input", "systemd", "run journalctl -f -o json and pipe it into input stdin"},
		{"input", "serial", "read the device with socat and let it send to input tcp"},
		{"input", "udp", "use input syslog with Mode udp and a parser of your own"},
		{"input", "unix_socket", "use input forward with unix_path, or input syslog with Mode unix_tcp"},
		{"input", "mqtt", "let the broker's bridge write to Kafka and use input kafka, or to a webhook and use input http"},
		{"input", "splunk elasticsearch opentelemetry", "let the sender use plain HTTP with JSON and use input http"},
		{"input", "kubernetes_events", "run kubectl get events --watch -o json and pipe it into input stdin"},
		{"input", "blob", "fetch the files and read them with input tail"},
		{"input", "ebpf", "run the tool as a command that prints JSON and pipe it into input stdin"},
		{"input", "etw event_tracing_windows winevtlog winlog winstat", "read Windows with its own forwarder, and let it send to input http or input syslog"},
		{"input", "random event_type", "use input dummy"},
		{"input", "health", "watch the host with your monitoring; a target of an output is watched by its retries"},
		{"input", "fluentbit_logs", "the log of this server goes to standard error; read its file with input tail"},
		{"input", "emitter lib storage_backlog stream_processor", "it is a part of Fluent Bit that no configuration names"},

		{"filter", "kubernetes", "the name of a file of logs has pod, namespace and container: add it by Path_Key of input tail and take it apart by filter parser (docs/pipeline.md shows how); labels have to be in what the application logs"},
		{"filter", "wasm tensorflow", "write it for filter lua, or change records in a worker behind output queue"},
		{"filter", "throttle_size", "limit the output: a rate of its queue holds records back without dropping them (reprise queue set)"},
		{"filter", "aws ecs", "add what you need with filter record_modifier and ${VARIABLES} of the environment"},
		{"filter", "sysinfo", "add the name of the host with filter record_modifier: Record hostname ${HOSTNAME}"},
		{"filter", "geoip2 checklist nightfall", "look it up at the target, for example with an ingest pipeline of Elasticsearch"},
		{"filter", "type_converter", "give the parser types: Types key:integer"},
		{"filter", "stdout", "use an output stdout with the same Match"},
		{"filter", "expect", "pipe records of your own into input stdin, through the same filters, into output stdout"},
		{"filter", "log_to_metrics alter_size", "metrics are not made of records here; count at the target, or read /api/v1/metrics for counts of records"},

		{"output", "opensearch", "use output es with Suppress_Type_Name on"},
		{"output", "s3 gcs azure_blob", "send by output http to a gateway that takes HTTP and writes objects, or write by output file and copy the folder"},
		{"output", "cloudwatch_logs kinesis_firehose kinesis_streams firehose kinesis", "requests are not signed for AWS; send by output http to a proxy that signs them, or to Vector"},
		{"output", "azure azure_kusto azure_logs_ingestion", "send by output http to Azure Event Grid or a Function, or by output kafka to Event Hubs"},
		{"output", "bigquery stackdriver chronicle", "send by output http to a Cloud Run service, or by output kafka to a connector of Google"},
		{"output", "splunk", "use output http with Uri /services/collector/raw, Format json_lines and Header Authorization Splunk TOKEN"},
		{"output", "datadog", "use output http with Host http-intake.logs.datadoghq.com, Uri /api/v2/logs, tls on and Header DD-API-KEY KEY"},
		{"output", "logdna nrlogs td oracle_log_analytics", "use output http with the address and the header with the key that the service asks for"},
		{"output", "slack", "let Alertmanager or the like write to people, about what your store of logs finds"},
		{"output", "loki", "send by output http to a collector that writes to Loki, such as Vector"},
		{"output", "opentelemetry", "send by output http, or by output forward to the fluentforward receiver of an OpenTelemetry collector"},
		{"output", "prometheus_exporter prometheus_remote_write vivo_exporter", "metrics are not carried here, only records; let Prometheus read /api/v1/metrics/prometheus"},
		{"output", "gelf", "use output http with Format gelf, to a GELF HTTP input"},
		{"output", "influxdb", "send by output http to Telegraf with its input http_listener_v2"},
		{"output", "kafka-rest", "use output kafka, or output http with the address of the proxy"},
		{"output", "nats websocket skywalking", "send by output http to a bridge, or take records by output queue and send them with a worker"},
		{"output", "pgsql", "use output queue and a worker that inserts, or output http to PostgREST"},
		{"output", "syslog tcp udp", "use output forward to a collector, or output http; a server of syslog such as rsyslog takes HTTP by imhttp"},
		{"output", "flowcounter plot", "use output counter, or read /api/v1/metrics"},
		{"output", "exit", "end the server from outside, for example with timeout"},
		{"output", "retry", "use output http to an address that answers 503"},
	} {
		all = append(all, Elsewhere{row[0], strings.Fields(row[1]), row[2]})
	}
	return all
}

func elsewhere(kind, name string) *Elsewhere {
	name = strings.ToLower(name)
	for _, e := range NotHere() {
		if e.Kind == kind && slices.Contains(e.Names, name) {
			return &e
		}
	}
	return nil
}
