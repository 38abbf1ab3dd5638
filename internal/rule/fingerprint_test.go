package rule

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestOfAMessageOnlyWhatStaysTheSameIsLeft(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{"", ""},
		{"connection refused", "connection refused"},
		// Go
		{"dial tcp 10.0.3.17:5432: connect: connection refused", "dial tcp #: connect: connection refused"},
		{"dial tcp [2001:db8::1f]:443: i/o timeout", "dial tcp [#]:#: i/o timeout"},
		{`Get "https://api.example.com/v1/users/42": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, `Get "": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`},
		{"runtime error: index out of range [5] with length 3", "runtime error: index out of range [#] with length #"},
		{"runtime error: invalid memory address or nil pointer dereference [signal SIGSEGV addr=0x18 pc=0x4a9e2f]", "runtime error: invalid memory address or nil pointer dereference [signal SIGSEGV addr=# pc=#]"},
		// Python
		{"invalid literal for int() with base 10: 'twelve'", `invalid literal for int() with base #: ""`},
		{"'NoneType' object has no attribute 'email'", `"" object has no attribute ""`},
		{"HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=30)", `HTTPSConnectionPool(host="", port=#): Read timed out. (read timeout=#)`},
		{"<urlopen error [Errno 111] Connection refused>", "<urlopen error [Errno #] Connection refused>"},
		{"<Order object at 0x7f3c2a1b9d50> is not JSON serializable", "<Order object at #> is not JSON serializable"},
		// Ruby
		{"undefined method `name' for nil:NilClass", `undefined method "" for nil:NilClass`},
		{"Couldn't find User with 'id'=1234", `Couldn't find User with ""=#`},
		{"PG::UniqueViolation: ERROR:  duplicate key value violates unique constraint \"index_users_on_email\"\nDETAIL:  Key (email)=(ann@example.com) already exists.", `PG::UniqueViolation: ERROR: duplicate key value violates unique constraint "" DETAIL: Key (email)=(ann@example.com) already exists.`},
		// Java
		{`Cannot invoke "com.acme.Order.getId()" because "order" is null`, `Cannot invoke "" because "" is null`},
		{"Could not open JDBC Connection; nested exception is ORA-12541: TNS:no listener", "Could not open JDBC Connection; nested exception is ORA-#: TNS:no listener"},
		{"com.acme.Order@6d06d69c cannot be cast", "com.acme.Order@# cannot be cast"},
		// Node
		{"connect ECONNREFUSED 127.0.0.1:6379", "connect ECONNREFUSED #"},
		{"Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", `Unexpected token "", ""... is not valid JSON`},
		{"Cannot read properties of undefined (reading 'total')", `Cannot read properties of undefined (reading "")`},
		// ids, hexadecimal, timestamps, amounts
		{"order 550e8400-e29b-41d4-a716-446655440000 not found", "order # not found"},
		{"job 03gq0x7k2m4v9c1d8f5h6j0a1 is gone", "job # is gone"},
		{"customer cus_Nffr9euf9w has no card", "customer cus_# has no card"},
		{"user42 is locked", "user# is locked"},
		{"commit a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 is missing", "commit # is missing"},
		{"digest abcd1234 is wrong", "digest # is wrong"},
		{"at 2026-11-21T15:30:05.123Z the lock was lost", "at # the lock was lost"},
		{"at 2026-11-21 15:30:05 +0200 the lock was lost", "at # the lock was lost"},
		{"Sat, 21 Nov 2026 15:30:05 GMT: lock lost", "#: lock lost"},
		{"Nov 3 2026 3:30:05 PM lock lost", "# lock lost"},
		{"took 1.5s", "took #"},
		{"took 1,500 ms", "took #"},
		{"balance is -12.50, needed 1e6", "balance is #, needed #"},
		{"/tmp/job-1234/part-7.csv: no space left", "/tmp/job-#/part-#.csv: no space left"},
		{"the worker's lease is over", "the worker's lease is over"},
		{"don't, can't and 'won't' do", `don't, can't and "" do`},
		{`a "quote \" inside" ends`, `a "" ends`},
		{"an 'open quote", "an 'open quote"},
		{"  blanks\t\tand\r\nlines  ", "blanks and lines"},
		{"Ошибка 42 соединения", "Ошибка # соединения"},
		{"bad byte \xff\xfe here", "bad byte \xff\xfe here"},
	} {
		if got := Essence(tt.message); got != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.message, got, tt.want)
		}
	}
}

const (
	goTrace = `goroutine 34 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:26 +0x64
panic({0x4a3f60?, 0x4e2b10?})
	/usr/local/go/src/runtime/panic.go:785 +0x132
example.com/shop/mail.(*Sender).Send(0xc0000b2000, {0x4d1f8a, 0x5})
	/src/shop/mail/sender.go:41 +0x1d
github.com/lib/queue.(*Worker).run(0xc00007e000)
	/root/go/pkg/mod/github.com/lib/queue@v1.4.0/worker.go:88 +0x2a5
main.main.func1()
	/src/shop/main.go:19 +0x25
created by main.main in goroutine 1
	/src/shop/main.go:17 +0x8f`
	pythonTrace = `Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/celery/app/trace.py", line 453, in trace_task
    R = retval = fun(*args, **kwargs)
  File "/app/tasks/mail.py", line 12, in send
    deliver(user["email"])
  File "/app/lib/smtp.py", line 88, in deliver
    server.connect(host, 25)
  File "/usr/lib/python3.12/smtplib.py", line 343, in connect
    self.sock = self._get_socket(host, port, self.timeout)
ConnectionRefusedError: [Errno 111] Connection refused`
	rubyTrace = `/usr/local/bundle/gems/activerecord-7.1.2/lib/active_record/core.rb:253:in 'find'
/app/app/models/user.rb:17:in 'User.by_id'
/app/app/jobs/mail_job.rb:9:in 'block in perform'
/usr/local/bundle/gems/sidekiq-7.2.0/lib/sidekiq/processor.rb:202:in 'execute_job'
/app/lib/boot.rb:3:in '<main>'`
	javaTrace = `java.lang.IllegalStateException: no card
	at java.base/java.util.Objects.requireNonNull(Objects.java:233)
	at com.acme.billing.Charge.run(Charge.java:57)
	at com.acme.billing.Charge$$Lambda$14/0x0000000800c8.call(Unknown Source)
	at com.acme.Main.lambda$main$0(Main.java:12)
	at org.springframework.aop.framework.CglibAopProxy.intercept(CglibAopProxy.java:718)
	at app//com.acme.queue.Worker.work(Worker.java:99)
Caused by: java.io.IOException: refused
	... 23 more`
	nodeTrace = `TypeError: Cannot read properties of undefined (reading 'total')
    at Invoice.sum (/app/src/invoice.js:31:22)
    at async charge (/app/src/charge.js:12:5)
    at Queue.<anonymous> (/app/node_modules/bull/lib/queue.js:1013:19)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)
    at file:///app/src/worker.mjs:7:3`
	dotnetTrace = `   at System.Net.Sockets.Socket.Connect(EndPoint remoteEP)
   at Acme.Mail.Sender.Send(String to) in /src/Mail/Sender.cs:line 31
   at Acme.Program.Main() in /src/Program.cs:line 9`
	phpTrace = `#0 /app/vendor/guzzle/Client.php(189): GuzzleHttp\Client->request('GET', 'http://x')
#1 /app/src/Mail.php(31): App\Mail->send(Object(App\User), 42)
#2 {main}`
	unknownTrace = `thread 'main' panicked at 7
   0: shop::mail::send @ 0x55d0
   1: shop::main`
)

func TestTheFramesAreOwnOnesNearestToTheFailureFirst(t *testing.T) {
	for _, tt := range []struct {
		name, trace string
		want        []string
	}{
		{"none", "", nil},
		{"go", goTrace, []string{"example.com/shop/mail.(*Sender).Send", "main.main.func#", "main.main"}},
		{"python", pythonTrace, []string{"smtp.py:deliver", "mail.py:send"}},
		{"ruby", rubyTrace, []string{"user.rb:User.by_id", "mail_job.rb:block in perform", "boot.rb:<main>"}},
		{"ruby before 3.4", "/app/user.rb:17:in `find'\n\tfrom /app/job.rb:3:in `perform'", []string{"user.rb:find", "job.rb:perform"}},
		{"java", javaTrace, []string{"com.acme.billing.Charge.run", "com.acme.billing.Charge", "com.acme.Main.lambda$main$#"}},
		{"node", nodeTrace, []string{"invoice.js:Invoice.sum", "charge.js:charge", "worker.mjs"}},
		{"dotnet", dotnetTrace, []string{"Acme.Mail.Sender.Send", "Acme.Program.Main"}},
		{"php", phpTrace, []string{`Mail.php:App\Mail->send`}},
		{"only a library's", "    at fetch (node:internal/deps/undici:3:4)\n    at run (/app/node_modules/x/y.js:1:1)", []string{"undici:fetch", "y.js:run"}},
		{"unknown", unknownTrace, []string{`thread "" panicked at #`, "#: shop::mail::send @ #", "#: shop::main"}},
	} {
		if got := Frames(tt.trace); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestAFingerprintStaysWhatItIs(t *testing.T) {
	for _, tt := range []struct {
		f    job.Failure
		want string
	}{
		{job.Failure{}, emptyPrint},
		{job.Failure{Type: "TimeoutError", Message: "no answer after 30s", Backtrace: nodeTrace}, "d247ef537207651a"},
	} {
		if got := Fingerprint(&tt.f).String(); got != tt.want {
			t.Errorf("%+v: got %s, want %s: groups and notes kept under the old one are lost", tt.f, got, tt.want)
		}
	}
}

const emptyPrint = "96a296d224f285c6"

func TestFingerprintsTellFailuresApartByTypeMessageAndOwnCode(t *testing.T) {
	first := job.Failure{Type: "E", Message: "no answer from 10.0.0.1 in 3s", Backtrace: pythonTrace}
	edit := func(f func(*job.Failure)) *job.Failure { c := first; f(&c); return &c }
	for _, tt := range []struct {
		name  string
		other *job.Failure
		same  bool
	}{
		{"another number", edit(func(f *job.Failure) { f.Message = "no answer from 10.9.1.77 in 31s" }), true},
		{"another attempt, holder and time", edit(func(f *job.Failure) { f.Number, f.Attempt, f.Holder, f.Failed, f.Status = 7, 7, "w", 7, 503 }), true},
		{"edited lines", edit(func(f *job.Failure) { f.Backtrace = strings.ReplaceAll(pythonTrace, "88", "91") }), true},
		{"another library", edit(func(f *job.Failure) { f.Backtrace = strings.ReplaceAll(pythonTrace, "smtplib.py", "socket.py") }), true},
		{"another type", edit(func(f *job.Failure) { f.Type = "F" }), false},
		{"another message", edit(func(f *job.Failure) { f.Message = "refused by 10.0.0.1 in 3s" }), false},
		{"another function of ours", edit(func(f *job.Failure) { f.Backtrace = strings.ReplaceAll(pythonTrace, "in deliver", "in greet") }), false},
		{"no trace", edit(func(f *job.Failure) { f.Backtrace = "" }), false},
		{"type and message run together", edit(func(f *job.Failure) { f.Type, f.Message = "En", "o answer from 10.0.0.1 in 3s" }), false},
	} {
		if same := Fingerprint(&first) == Fingerprint(tt.other); same != tt.same {
			t.Errorf("%s: same is %t", tt.name, same)
		}
	}
}

func TestOfALongMessageTheFirst4KiBCount(t *testing.T) {
	head := strings.Repeat("x ", 2048)
	if Essence(head+"one") != Essence(head+"two") {
		t.Error("what comes after 4 KiB counts")
	}
	if Essence(head[2:]+"o") == Essence(head[2:]+"t") {
		t.Error("what comes just before does not count")
	}
	if a, b := `body "`+strings.Repeat("a", 5000)+`" end`, `body "`+strings.Repeat("b", 6000)+`" end`; Essence(a) != Essence(b) {
		t.Error("a quote whose end is cut off counts")
	}
}

// FuzzFingerprint: no text breaks it, work and result are bounded, no digit is
// left, and a digit that becomes another changes nothing.
func FuzzFingerprint(f *testing.F) {
	for _, trace := range []string{goTrace, pythonTrace, rubyTrace, javaTrace, nodeTrace, dotnetTrace, phpTrace, unknownTrace} {
		f.Add("E", "at 2026-11-21T15:30:05Z 'x' of 0x1f user42 "+trace[:60], trace)
	}
	f.Add("", "\"'`\\", "at (")
	f.Fuzz(func(t *testing.T, kind, message, trace string) {
		e := Essence(message)
		if len(e) > printMessageMax || strings.ContainsAny(e, "0123456789") {
			t.Fatalf("%q becomes %q", message, e)
		}
		frames := Frames(trace)
		if len(frames) > printFramesMax {
			t.Fatalf("%d frames: %q", len(frames), frames)
		}
		other := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '8' {
				return r + 1
			}
			return r
		}, message)
		if got := Essence(other); len(other) == len(message) && got != e { // invalid UTF-8 grows in Map
			t.Fatalf("%q becomes %q,\n%q becomes %q", message, e, other, got)
		}
		if Fingerprint(&job.Failure{Type: kind, Message: message, Backtrace: trace}) == 0 {
			t.Fatal("the fingerprint is 0")
		}
	})
}
