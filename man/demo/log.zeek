#separator \x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#path	conn
#open	2026-11-30-03-56-22
#fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	proto	service	duration	orig_bytes	resp_bytes	conn_state	local_orig	local_resp	missed_bytes	history	orig_pkts	orig_ip_bytes	resp_pkts	resp_ip_bytes	tunnel_parents	ip_proto	community_id	resp_cc	postern.name	postern.sandbox	postern.verdict	postern.reason	postern.rule	postern.detail	postern.end	postern.resp_asn
#types	time	string	addr	port	addr	port	enum	string	interval	count	count	string	bool	bool	count	string	count	count	count	count	set[string]	count	string	string	string	string	string	string	string	string	string	count
1796010951.977854	C35867a2300000003	172.16.0.2	47410	45.45.45.10	443	tcp	ssl	0.078664	777	1679	SF	T	F	0	-	12	-	6	-	-	6	1:P7iICqjBY4DNL5N8v0HY0nxV66Y=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010952.139487	C35867a2300000006	fd70:6f73:7465:726e::2	52810	2600:1:2::10	443	tcp	ssl	0.003721	777	1699	SF	T	F	0	-	10	-	8	-	-	6	1:Ruli0IRLr6rdKImIv8LGtNnIOk4=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010952.158842	C35867a2300000009	172.16.0.2	58484	45.45.45.10	80	tcp	http	0.004086	81	185	SF	T	F	0	-	6	-	3	-	-	6	1:vAd5pmvSpk5ncIaZS8+t7EXba3w=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010952.287655	C35867a230000000c	172.16.0.2	50016	45.45.45.11	443	tcp	ssl	0.019120	781	1682	SF	T	F	0	-	11	-	5	-	-	6	1:g5EoMzsHNPWJ6BSW48UDAsWrl2g=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010952.611522	C35867a230000000f	172.16.0.2	60542	10.0.0.5	80	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:Oo2ZPxHXb7bk5Nd4/6WNn6Dk0fo=	-	-	box1	denied	never_address	-	private use	refused	-
1796010952.741628	C35867a2300000010	172.16.0.2	50518	169.254.169.254	80	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:eUz0TXzDDsOT2RqhRDD6kNT8tco=	-	-	box1	denied	never_address	-	IMDS of AWS GCP Azure OCI DigitalOcean Hetzner OpenStack Vultr IBM Huawei Exoscale	refused	-
1796010952.995826	C35867a2300000013	172.16.0.2	58690	45.45.45.20	443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:uWlbZXIvc2YUumzYDwaB7cUWqak=	-	-	box1	denied	not_leased	-	-	refused	-
1796010953.079719	C35867a2300000016	172.16.0.2	47416	45.45.45.10	443	tcp	ssl	-	-	-	REJ	T	F	0	-	-	-	-	-	-	6	1:b1EIrALb+PODchyYvpEFUI07D8w=	-	www.lab-b.net	box1	denied	no_rule	-	-	refused	-
1796010953.176789	C35867a2300000019	172.16.0.2	58496	45.45.45.10	80	tcp	http	-	-	-	REJ	T	F	0	-	-	-	-	-	-	6	1:3iCiEqAdr9zOnaUCjA3SlF6FoIo=	-	www.lab-b.net	box1	denied	no_rule	-	-	refused	-
1796010953.267324	C35867a230000001c	172.16.0.2	40594	1.1.1.1	853	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:Ag1grcj5rdL9RVowT3taklFGFUY=	-	-	box1	denied	not_leased	-	-	refused	-
1796010953.403502	C35867a230000001f	172.16.0.2	48906	45.45.45.11	8443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:NwU6UvOL7xJfggV1CbHVfDgWXqQ=	-	-	box1	denied	not_leased	-	-	refused	-
1796010953.403538	C35867a2300000020	fd70:6f73:7465:726e::2	46792	2600:1:2::11	8443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:AfOjJ399rxDlwja3PiuPUzxhnx8=	-	-	box1	denied	not_leased	-	-	refused	-
1796010953.675796	C35867a2300000023	172.16.0.2	47428	45.45.45.10	443	tcp	ssl	0.068754	777	1678	SF	T	F	0	-	10	-	9	-	-	6	1:VGYCm7Dg6YJ1xlMjBZwrY4KiNWU=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010953.987844	C35867a2300000026	172.16.0.2	50032	45.45.45.11	443	tcp	ssl	0.083282	781	1683	SF	T	F	0	-	12	-	6	-	-	6	1:7maKouYksxILg01M8NVCkxGO1AI=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010954.515638	C35867a2300000029	172.16.0.2	34532	45.45.45.10	443	tcp	ssl	0.054476	777	1701	SF	T	F	0	-	10	-	7	-	-	6	1:wfdHK4iC5rwyTuji21dL2/36qH0=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010954.764670	C35867a230000002c	172.16.0.2	38892	45.45.45.11	443	tcp	ssl	0.083133	781	1683	SF	T	F	0	-	11	-	8	-	-	6	1:no0TPFteW2GMCcXOEy5rOjQdQe0=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010955.347405	C35867a230000002f	172.16.0.2	34540	45.45.45.10	443	tcp	ssl	0.040100	777	1680	SF	T	F	0	-	10	-	7	-	-	6	1:ZPivwQ8yHzOp/vRUvQf5zpEucmg=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010955.626479	C35867a2300000032	172.16.0.2	38898	45.45.45.11	443	tcp	ssl	0.079441	781	1704	SF	T	F	0	-	10	-	5	-	-	6	1:4JIgHU0oc+1NuKPCkxpc2wbuFTc=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010956.075728	C35867a2300000035	172.16.0.2	34552	45.45.45.10	443	tcp	ssl	0.065664	777	1678	SF	T	F	0	-	14	-	9	-	-	6	1:WPWubd+U8nonR+Cl1hLP3CXh8Vo=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010956.408942	C35867a2300000038	172.16.0.2	38908	45.45.45.11	443	tcp	ssl	0.032611	781	1683	SF	T	F	0	-	11	-	9	-	-	6	1:htwa5/sRqISLx7U2cD9XK7bdqJ4=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010956.927631	C35867a230000003b	172.16.0.2	34558	45.45.45.10	443	tcp	ssl	0.062742	777	1702	SF	T	F	0	-	11	-	8	-	-	6	1:VsLuzxo1yZyshceyqne8n1Lcil4=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010957.291622	C35867a230000003e	172.16.0.2	38920	45.45.45.11	443	tcp	ssl	0.044822	781	1683	SF	T	F	0	-	12	-	7	-	-	6	1:bZZWo+Km6FfOetxR2C1ngQ7KZk4=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796010957.793892	C35867a2300000041	172.16.0.2	34568	45.45.45.10	443	tcp	ssl	0.085757	777	1679	SF	T	F	0	-	12	-	12	-	-	6	1:kCEy0eFHpd7Cq7UhGCk48lKhzQU=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796010958.215651	C35867a2300000044	172.16.0.2	38926	45.45.45.11	443	tcp	ssl	0.041437	781	1704	SF	T	F	0	-	10	-	9	-	-	6	1:nkHifdMAQBxrK4Iv2/QBAu/XQOE=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
#close	2026-11-30-03-56-22
