-- highwater run examples/clicks.sql: clicks per user and minute, from a file.
CREATE SOURCE clicks (user_id BIGINT, url TEXT, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5 seconds')
WITH (connector = 'file', path = 'examples/clicks.jsonl') FORMAT PLAIN ENCODE JSON;

CREATE MATERIALIZED VIEW clicks_per_minute AS
SELECT user_id, window_start, count(*) AS clicks
FROM TUMBLE(clicks, ts, INTERVAL '1 minute') GROUP BY user_id, window_start, window_end;

FLUSH; -- wait until everything that is there has been read
SELECT * FROM clicks_per_minute ORDER BY window_start, user_id;
SELECT count(*) AS late FROM "clicks_per_minute$late";
SELECT count(*) AS failed FROM "clicks$errors";
