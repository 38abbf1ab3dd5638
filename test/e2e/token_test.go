package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// cli runs the binary as a person would, with a token ("" = none).
func cli(t *testing.T, token string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REPRISE_") && !strings.HasPrefix(v, "ZIZQ_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if token != "" {
		cmd.Env = append(cmd.Env, "REPRISE_TOKEN="+token)
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// cliOK wants it to succeed.
func cliOK(t *testing.T, token string, args ...string) string {
	t.Helper()
	out, errs, code := cli(t, token, args...)
	if code != 0 {
		t.Fatalf("reprise %s: exit code %d\n%s", strings.Join(args, " "), code, errs)
	}
	return strings.TrimSpace(out)
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// takeWith opens a take stream; ended gets the reason when it is over.
func takeWith(t *testing.T, c *client, token, queue string) (ended chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	header := []string{}
	if token != "" {
		header = bearer(token)
	}
	req, err := c.request(ctx, "GET", "/jobs/take?queue="+queue, nil, header...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.http.Do(req) //nolint:bodyclose // returns with the headers; the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 {
		t.Fatalf("a take was answered %s", res.Status)
	}
	ended = make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		ended <- err
	}()
	return ended
}

func endsNow(t *testing.T, what string, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil && strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s did not end by itself", what)
		}
	case <-time.After(patience):
		t.Errorf("%s did not end", what)
	}
}

// TestTheLifeOfTokens goes from the open server over its first token to the
// revoking of one that has a stream open, over kills and restarts.
func TestTheLifeOfTokens(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := start(t, root)
	c := dial(s.url)
	c.enqueue(t, "open", 1)
	early := takeWith(t, c, "", "none")
	if _, errs, code := cli(t, "", "token", "create", "--url", s.url, "--name", "ci", "--scope", "enqueue"); code != 1 || !strings.Contains(errs, "the first token must have the scope admin") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	admin := cliOK(t, "", "token", "create", "--url", s.url, "--name", "root", "--scope", "admin")
	endsNow(t, "the stream that came without a token", early)
	if _, errs, code := cli(t, "", "jobs", "list", "--url", s.url); code != 1 || !strings.Contains(errs, "REPRISE_TOKEN") {
		t.Errorf("without a token: exit code %d\n%s", code, errs)
	}
	mail := cliOK(t, admin, "token", "create", "--url", s.url, "--name", "mail", "--scope", "enqueue,work", "--queue", "mail-*", "--expires", "90d")
	cliOK(t, mail, "enqueue", "--url", s.url, "--queue", "mail-eu", "--type", "t", "--payload", "1")
	if _, errs, code := cli(t, mail, "enqueue", "--url", s.url, "--queue", "bills", "--type", "t"); code != 1 || !strings.Contains(errs, `not for the queue "bills"`) {
		t.Errorf("another queue: exit code %d\n%s", code, errs)
	}
	if _, errs, code := cli(t, mail, "jobs", "list", "--url", s.url, "--queue", "mail-eu"); code != 1 || !strings.Contains(errs, "lacks the scope read") {
		t.Errorf("another scope: exit code %d\n%s", code, errs)
	}
	c.close()
	s.kill()

	s = start(t, root, "--port", s.port())
	c = dial(s.url)
	c.must(t, 401, nil, "GET", "/jobs", nil)
	out, errs, code := cli(t, mail, "work", "--url", s.url, "--queue", "mail-eu", "--exec", "cat", "--max", "1")
	if code != 0 || !strings.Contains(out, "1") {
		t.Errorf("working: exit code %d\n%s%s", code, out, errs)
	}
	list := cliOK(t, admin, "token", "list", "--url", s.url)
	says(t, list, "root", "mail-*", "never", "in 90d")
	if strings.Contains(list, mail[14:]) || strings.Contains(list, admin[14:]) {
		t.Errorf("a secret is listed:\n%s", list)
	}
	open := takeWith(t, c, mail, "mail-eu")
	says(t, cliOK(t, admin, "token", "revoke", "--url", s.url, "mail"), "token mail is revoked")
	endsNow(t, "the stream of the revoked token", open)
	c.must(t, 401, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "mail-eu", "payload": 1}, bearer(mail)...)
	if _, errs, code := cli(t, admin, "token", "revoke", "--url", s.url, "root"); code != 1 || !strings.Contains(errs, "last token with the scope admin") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	c.close()
	s.kill()

	s = start(t, root)
	c = dial(s.url)
	defer c.close()
	c.must(t, 401, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "mail-eu", "payload": 1}, bearer(mail)...)
	c.must(t, 200, nil, "GET", "/jobs", nil, bearer(admin)...)
	var log wire.Audit
	c.must(t, 200, &log, "GET", "/audit", nil, bearer(admin)...)
	if len(log.Entries) != 3 || log.Entries[0].Action != "revoke" || log.Entries[0].By != "root" || log.Entries[0].Subject != "mail" {
		t.Errorf("the audit log has %+v", log.Entries)
	}
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T, dir string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	cert = write(t, filepath.Join(dir, "cert.pem"), text)
	key = write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(text))
	return cert, key, roots
}

// TestAServerDoesNotListenOpenly starts it beyond loopback with ever more of
// what is wanted there.
func TestAServerDoesNotListenOpenly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, roots := certificate(t, dir)
	data := filepath.Join(dir, "root")
	beyond := []string{"--host", "0.0.0.0"}
	withTLS := append(beyond, "--tls-cert", cert, "--tls-key", key)
	says(t, refusesToStart(t, data, beyond...), "there is no TLS and no token", "tls-cert", "--behind-tls-proxy", "reprise token create", "--insecure")
	says(t, refusesToStart(t, data, withTLS...), "there is no token", "auth.tokens")
	says(t, refusesToStart(t, data, append(beyond, "--behind-tls-proxy")...), "there is no token")
	says(t, refusesToStart(t, data, "--behind-tls-proxy"), "there is no token")

	admin := cliOK(t, "", "token", "generate")
	file := write(t, filepath.Join(dir, "reprise.yaml"), "auth: {tokens: {root: {secret: \"${file:root.token}\", scopes: [admin]}}}\n")
	write(t, filepath.Join(dir, "root.token"), admin+"\n")
	says(t, refusesToStart(t, data, append(beyond, "-c", file)...), "there is no TLS:")
	s := launch(t, data, append(withTLS, "-c", file)...)
	until(t, "listening", func() (bool, string) { return strings.Contains(s.output(), `"scheme":"https"`), s.output() })
	_, port, _ := strings.Cut(s.output()[strings.Index(s.output(), `"addr":"`)+8:], "]:")
	port, _, _ = strings.Cut(port, `"`)
	c := dial("https://127.0.0.1:" + port)
	c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	defer c.close()
	c.must(t, 401, nil, "GET", "/jobs", nil)
	c.must(t, 200, nil, "GET", "/jobs", nil, bearer(admin)...)
	c.must(t, 401, nil, "POST", "/tokens", map[string]any{"name": "mine", "scopes": []string{"admin"}})
	made := wire.MadeToken{}
	c.must(t, 201, &made, "POST", "/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}}, bearer(admin)...)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// A token in the store will do as well.
	s = launch(t, data, withTLS...)
	until(t, "listening", func() (bool, string) { return strings.Contains(s.output(), `"scheme":"https"`), s.output() })
	s.terminate()
}

func TestAUnixSocketIsAWayIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	s := launch(t, filepath.Join(dir, "root"), "--unix", socket, "--tcp=false")
	until(t, "listening", func() (bool, string) { return strings.Contains(s.output(), `"api":"unix"`), s.output() })
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 || info.Mode()&fs.ModeSocket == 0 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	url := "unix://" + socket
	admin := cliOK(t, "", "token", "create", "--url", url, "--name", "root", "--scope", "admin")
	cliOK(t, admin, "enqueue", "--url", url, "--queue", "q", "--type", "t", "--payload", "7")
	if out := cliOK(t, admin, "work", "--url", url, "--queue", "q", "--exec", "cat", "--max", "1", "--quiet"); !strings.Contains(out, "7") {
		t.Errorf("worked off: %q", out)
	}
	says(t, refusesToStart(t, filepath.Join(dir, "other"), "--unix", socket), "a server answers at")
	succeeds(t, []string{"doctor", "--root-dir", filepath.Join(dir, "root"), "--url", url}, url+" is ready")
	succeeds(t, []string{"doctor", "--root-dir", filepath.Join(dir, "root"), "--unix", socket, "--tcp=false"}, "a Reprise server answers at "+socket)
	s.kill() // which leaves the socket behind
	s = start(t, filepath.Join(dir, "root"), "--unix", socket)
	cliOK(t, admin, "jobs", "list", "--url", url)
	cliOK(t, admin, "jobs", "list", "--url", s.url)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// TestNoSecretIsEverTold runs a server with secrets in all the places where
// they may stand, makes it talk as much as it can, and looks for them in all
// it said and wrote.
func TestNoSecretIsEverTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "root")
	newToken := func() string { return cliOK(t, "", "token", "generate") }
	literal, fromFile, fromEnv := newToken(), newToken(), newToken()
	const host = "hunter2.example"
	write(t, filepath.Join(dir, "ci.token"), fromFile+"\n")
	file := write(t, filepath.Join(dir, "reprise.yaml"), fmt.Sprintf(`
server: {allow_host: ["${file:host}"], log_level: trace}
auth:
  tokens:
    root: {secret: %s, scopes: [admin]}
    ci: {secret: "${file:ci.token}", scopes: [enqueue, work], queues: "mail-*"}
`, literal))
	write(t, filepath.Join(dir, "host"), host)
	bad := write(t, filepath.Join(dir, "bad.yaml"), fmt.Sprintf("auth: {tokens: {a: {secret: %s0, scopes: [read]}, b: {secret: '${file:ci.token}', scopes: []}}}\n", literal))
	var said strings.Builder
	for _, args := range [][]string{
		{"config", "-c", file}, {"config", "-c", file, "--json"}, {"config", "-c", bad}, {"config", "-c", bad, "--check"}, {"config", "-c", bad, "--check", "--json"},
	} {
		out, errs, _ := cli(t, "", args...)
		said.WriteString(out + errs)
	}
	says(t, said.String(), "auth.tokens.root.secret", "********", "auth.tokens.ci.scopes")

	s := start(t, data, "-c", file)
	c := dial(s.url)
	defer c.close()
	talk := func(method, path string, body any, header ...string) {
		r, err := c.do(t.Context(), method, path, body, header...)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&said, "%s %s: %v %s\n", method, path, r.header, r.body)
	}
	var made wire.MadeToken
	c.must(t, 201, &made, "POST", "/tokens", map[string]any{"name": "made", "scopes": []string{"read"}}, bearer(literal)...)
	for _, token := range []string{literal, fromFile, fromEnv, made.Secret, literal + "0", "Basic " + fromEnv} {
		talk("GET", "/tokens", nil, bearer(token)...)
		talk("GET", "/audit", nil, bearer(token)...)
		talk("GET", "/jobs", nil, bearer(token)...)
		talk("POST", "/jobs", `{"type":"t","queue":"other","payload":1}`, bearer(token)...)
		talk("POST", "/jobs", `{broken`, bearer(token)...)
		_, errs, _ := cli(t, token, "jobs", "list", "--url", s.url, "--queue", "other")
		said.WriteString(errs)
	}
	_, errs, _ := cli(t, fromEnv, "jobs", "list", "--url", "http://127.0.0.1:1")
	said.WriteString(errs)
	talk("DELETE", "/tokens/"+made.ID, nil, bearer(literal)...)
	raw, err := net.Dial("tcp", s.addr) // no HTTP at all, with a secret in it
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(raw, "GET /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nbroken header %s\r\n\r\n", fromEnv, fromEnv)
	_, _ = io.Copy(&said, bufio.NewReader(raw))
	_ = raw.Close()
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	said.WriteString(strings.Join(s.lines, "\n"))
	says(t, said.String(), "calls with a token that is not known")
	err = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		said.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"written into the file": literal, "of another file": fromFile, "that nobody knows": fromEnv, "made over the API": made.Secret,
	} {
		for _, part := range []string{secret, secret[14:], secret[14:40]} { // also without its head, or cut off
			if i := strings.Index(said.String(), part); i >= 0 {
				t.Errorf("the token %s is told: ...%.200q", name, said.String()[max(0, i-150):i])
				break
			}
		}
	}
	if strings.Contains(said.String(), host) {
		t.Errorf("the value behind a reference is told")
	}
}
