import org.codelibs.opensearch.runner.OpenSearchRunner;

/** Runs a node on a loopback port, with its data in a directory, until its input ends. */
public class Run {
  public static void main(String[] args) throws Exception {
    OpenSearchRunner runner = new OpenSearchRunner();
    runner.onBuild((number, settings) -> {
      settings.put("network.host", "127.0.0.1");
      settings.put("http.port", args[0]);
      settings.put("http.max_content_length", "1mb");
      settings.put("discovery.type", "single-node");
      settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
    }).build(OpenSearchRunner.newConfigs().clusterName("reprise-test").numOfNode(1).basePath(args[1]));
    System.out.println("READY");
    System.in.transferTo(java.io.OutputStream.nullOutputStream());
    runner.close();
  }
}
