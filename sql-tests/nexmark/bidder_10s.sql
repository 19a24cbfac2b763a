CREATE MATERIALIZED VIEW bidder_10s AS
SELECT bidder, window_start, window_end, count(*) AS bids, avg(price) AS avg_price, max(price) AS max_price
FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY bidder, window_start, window_end;
