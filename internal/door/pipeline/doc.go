// Package pipeline is the door for Fluent Bit configurations: inputs, filters and outputs,
// with tags that say what goes where (pipeline.md).
//
// It is words and routes. A chunk of records is a payload that a job for each of its routes
// shares (internal/part/chunk); an output is a queue and a courier that delivers what is in
// it; Retry_Limit, scheduler.base and scheduler.cap are the retry policy of that queue, and
// storage.total_limit_size is its quota.
package pipeline
