CREATE SOURCE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, date_time TIMESTAMP, extra TEXT,
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
WITH (connector = 'nexmark', table = 'bid', rate = '1000');

CREATE MATERIALIZED VIEW channel_10s AS
SELECT channel, window_start, window_end, count(*) AS bids, round(avg(price), 2) AS avg_price, max(price) AS max_price
FROM TUMBLE(bid, date_time, INTERVAL '10 seconds')
GROUP BY channel, window_start, window_end;

CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS bids, sum(price) AS volume FROM bid;
